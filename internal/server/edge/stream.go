package edge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"countersign/internal/live"
	"countersign/internal/problem"

	"github.com/labstack/echo/v4"
)

// Limits of event streams.
const (
	beat       = 15 * time.Second // a comment line, so that proxies keep the connection; the listener is looked at again
	streamMax  = time.Hour        // then the client reconnects
	streamsMax = 512              // listeners at once
)

// Audience says who may listen to a stream, and for how long.
type Audience struct {
	// May is asked at every beat, and when something happened under Again.
	// The stream ends at its first error.
	May func(context.Context) error
	// Again is the topic that says that access changed. It is never sent.
	Again string
}

// Stream writes the hub's events until the client leaves, may no longer
// listen, the hub closes or an hour has passed. Last-Event-ID continues an
// earlier stream; ?after= begins after the event with that id.
func Stream(c echo.Context, hub *live.Hub, a Audience) error {
	if hub.Listening() >= streamsMax {
		return problem.New(problem.Unavailable, "too_many_streams", "There are already %d open event streams. Reload in a while.", streamsMax)
	}
	w := c.Response()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	after := c.Request().Header.Get("Last-Event-ID")
	if after == "" {
		after = c.QueryParam("after")
	}
	listener := hub.Subscribe(after)
	defer listener.Close()
	if _, err := fmt.Fprint(w, "retry: 2000\n: hello\n\n"); err != nil {
		return nil // the client left
	}
	w.Flush()
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	ctx, end := context.WithTimeout(c.Request().Context(), streamMax)
	defer end()
	for ctx.Err() == nil && next(ctx, w, listener, ticker, a) == nil {
		w.Flush()
	}
	return nil
}

// errOver ends a stream.
var errOver = errors.New("the stream is over")

// next waits for one thing that happens and writes it; its error ends the
// stream.
func next(ctx context.Context, w io.Writer, l *live.Listener, ticker *time.Ticker, a Audience) error {
	select {
	case <-ctx.Done():
		return errOver
	case <-ticker.C:
		if err := a.May(ctx); err != nil {
			return err
		}
		_, err := fmt.Fprint(w, ": beat\n\n")
		return err
	case e, open := <-l.C:
		switch {
		case !open:
			return errOver
		case e.Topic == a.Again:
			return a.May(ctx)
		case e.Topic == live.Reset: // what was missed may be that access changed
			if err := a.May(ctx); err != nil {
				return err
			}
		}
		return writeEvent(w, e)
	}
}

func writeEvent(w io.Writer, e live.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Topic, data)
	return err
}
