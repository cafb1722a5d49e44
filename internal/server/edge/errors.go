package edge

import (
	"errors"
	"log/slog"
	"net/http"

	"countersign/internal/problem"

	"github.com/labstack/echo/v4"
)

// Problem returns what may be shown of err: a problem in its chain, what the
// router's own errors mean, or the fixed internal problem.
func Problem(err error) *problem.Error {
	var fromRouter *echo.HTTPError
	if errors.As(err, &fromRouter) {
		return routerProblem(fromRouter)
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return problem.New(problem.TooLarge, "too_large", "The request is larger than the %d bytes allowed here. Nothing was changed.", tooLarge.Limit)
	}
	return problem.From(err)
}

func routerProblem(e *echo.HTTPError) *problem.Error {
	switch e.Code {
	case http.StatusNotFound:
		return problem.New(problem.NotFound, "not_found", "There is nothing at this address. It may have been mistyped, or you may not see what is there.")
	case http.StatusMethodNotAllowed:
		return problem.New(problem.Malformed, "method_not_allowed", "This address does not take that kind of request.")
	case http.StatusRequestEntityTooLarge:
		return problem.New(problem.TooLarge, "too_large", "The request is larger than allowed here. Nothing was changed.")
	case http.StatusBadRequest, http.StatusUnsupportedMediaType:
		return problem.New(problem.Malformed, "malformed", "The request could not be read. Nothing was changed.").Because(e)
	}
	return problem.From(errors.New(e.Error()))
}

// Log writes the one line of a failed request: an error with its cause when
// the fault is ours, a short note otherwise.
func Log(logger *slog.Logger, c echo.Context, p *problem.Error) {
	attrs := []any{"reference", Reference(c), "method", c.Request().Method, "route", c.Path(), "status", Status(p), "code", p.Code}
	if p.Kind == problem.Internal {
		logger.Error("request failed", append(attrs, "cause", p.Error())...)
		return
	}
	logger.Debug("request refused", attrs...)
}
