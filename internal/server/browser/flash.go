package browser

import (
	"encoding/base64"
	"encoding/json"
	"net/http"

	"countersign/web/templates/parts"

	"github.com/labstack/echo/v4"
)

// flashCookie carries what the last POST did to the page that is shown next.
// It holds our own sentences only, and is shown as text.
const flashCookie = "countersign-flash"

// flashBytesMax bounds what is read of it.
const flashBytesMax = 2048

type flash struct{ Tone, Title, Text string }

// say leaves a message for the next page.
func say(c echo.Context, tone, title, text string) {
	raw, err := json.Marshal(flash{tone, title, text})
	if err != nil {
		return
	}
	c.SetCookie(&http.Cookie{Name: flashCookie, Value: base64.RawURLEncoding.EncodeToString(raw), Path: "/", MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// said returns the message of the last POST and removes it.
func said(c echo.Context) *parts.Notice {
	cookie, err := c.Cookie(flashCookie)
	if err != nil || len(cookie.Value) > flashBytesMax {
		return nil
	}
	c.SetCookie(&http.Cookie{Name: flashCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	raw, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return nil
	}
	var f flash
	if json.Unmarshal(raw, &f) != nil {
		return nil
	}
	return &parts.Notice{Tone: f.Tone, Title: f.Title, Text: f.Text}
}
