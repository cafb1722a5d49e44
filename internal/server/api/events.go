package api

import (
	"countersign/internal/server/edge"

	"github.com/labstack/echo/v4"
)

// events is GET /events: a Server-Sent Events stream of topics.
func (a *api) events(c echo.Context) error {
	if err := a.desk.MayWatch(principal(c)); err != nil {
		return err
	}
	return edge.Stream(c, a.hub)
}
