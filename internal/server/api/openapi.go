package api

import (
	_ "embed"
	"net/http"

	"github.com/labstack/echo/v4"
)

// document describes exactly the routes of this package; a test compares.
//
//go:embed openapi.json
var document []byte

// openAPI is GET /openapi.json.
func openAPI(c echo.Context) error { return c.Blob(http.StatusOK, "application/json", document) }
