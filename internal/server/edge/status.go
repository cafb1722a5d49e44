// Package edge is what pages and the API share at the network's edge: the
// status of each kind of problem, references for the log, the headers every
// answer carries, the check of the host, and limits.
//
// It guarantees that an error which is not a problem shows nothing of itself,
// and that every refused request is refused before a handler sees it. It must
// not know pages, JSON shapes or use cases.
package edge

import (
	"net/http"

	"countersign/internal/problem"
)

// statuses is the one table from kinds of problems to HTTP statuses.
var statuses = map[problem.Kind]int{
	problem.Invalid:         http.StatusUnprocessableEntity,
	problem.Malformed:       http.StatusBadRequest,
	problem.Unauthenticated: http.StatusUnauthorized,
	problem.Forbidden:       http.StatusForbidden,
	problem.NotFound:        http.StatusNotFound,
	problem.Conflict:        http.StatusConflict,
	problem.TooLarge:        http.StatusRequestEntityTooLarge,
	problem.RateLimited:     http.StatusTooManyRequests,
	problem.Internal:        http.StatusInternalServerError,
	problem.Unavailable:     http.StatusServiceUnavailable,
}

// Status returns the HTTP status of a problem.
func Status(p *problem.Error) int {
	if s, ok := statuses[p.Kind]; ok {
		return s
	}
	return http.StatusInternalServerError
}
