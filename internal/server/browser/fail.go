package browser

import (
	"net/http"

	"countersign/internal/problem"
	"countersign/internal/server/edge"
	"countersign/web/templates/pages"
	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// Fail answers an error with a page in the same frame that says what
// happened, that nothing was lost, and what to do.
func (b *Browser) Fail(err error, c echo.Context) {
	p := edge.Problem(err)
	edge.Log(b.logger, c, p)
	if c.Response().Committed {
		return
	}
	status := edge.Status(p)
	view := pages.FailureView{Status: status, Title: failureTitle(p), Text: p.Message, Lost: "Nothing was changed.", Reference: edge.Reference(c),
		Next: []parts.Link{{Text: "To the console", URL: "/"}}}
	for _, f := range p.Fields {
		view.Faults = append(view.Faults, pages.Fault{Where: f.Pointer, What: f.Message})
	}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		c.Response().Header().Set("Retry-After", "5")
	}
	view.Page = bare(view.Title)
	if who(c).Person != "" {
		if page, err := b.frame(c, view.Title); err == nil {
			view.Page = page
		}
	}
	if err := render(c, status, pages.Failure(view)); err != nil {
		b.logger.Error("render an error page", "reference", edge.Reference(c), "cause", err)
	}
}

// failureTitles are the headings of error pages.
var failureTitles = map[problem.Kind]string{
	problem.Invalid:         "Something in it does not fit",
	problem.Malformed:       "The request could not be read",
	problem.Unauthenticated: "You are signed out",
	problem.Forbidden:       "You may not do this",
	problem.NotFound:        "There is nothing here",
	problem.Conflict:        "It changed meanwhile",
	problem.TooLarge:        "That is too much at once",
	problem.RateLimited:     "Too often",
	problem.Unavailable:     "Not right now",
	problem.Internal:        "Something went wrong on our side",
}

func failureTitle(p *problem.Error) string { return failureTitles[p.Kind] }
