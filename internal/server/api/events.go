package api

import (
	"context"

	"countersign/internal/desk"
	"countersign/internal/server/edge"

	"github.com/labstack/echo/v4"
)

// events is GET /events: a Server-Sent Events stream of topics.
func (a *api) events(c echo.Context) error {
	if err := a.desk.MayWatch(principal(c)); err != nil {
		return err
	}
	leave, err := a.waits.enter(principal(c).Token)
	if err != nil {
		return err
	}
	defer leave()
	again := func(ctx context.Context) error {
		p, err := a.desk.TokenPrincipal(ctx, bearer(c))
		if err != nil {
			return err
		}
		return a.desk.MayWatch(p)
	}
	return edge.Stream(c, a.hub, edge.Audience{May: again, Again: desk.TopicAccess})
}
