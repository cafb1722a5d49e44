package edge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"countersign/internal/live"
	"countersign/internal/problem"

	"github.com/labstack/echo/v4"
)

// Limits of event streams.
const (
	beat       = 20 * time.Second // a comment line, so that proxies keep the connection
	streamMax  = time.Hour        // then the client reconnects, and its session is looked at again
	streamsMax = 512              // listeners at once
)

// Stream writes the hub's events until the client leaves, the hub closes or
// an hour has passed. Last-Event-ID continues an earlier stream.
func Stream(c echo.Context, hub *live.Hub) error {
	if hub.Listening() >= streamsMax {
		return problem.New(problem.Unavailable, "too_many_streams", "There are already %d open event streams. Reload in a while.", streamsMax)
	}
	w := c.Response()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	listener := hub.Subscribe(c.Request().Header.Get("Last-Event-ID"))
	defer listener.Close()
	ticker, end := time.NewTicker(beat), time.NewTimer(streamMax)
	defer ticker.Stop()
	defer end.Stop()
	if _, err := fmt.Fprint(w, "retry: 2000\n: hello\n\n"); err != nil {
		return nil // the client left
	}
	w.Flush()
	for {
		var err error
		select {
		case <-c.Request().Context().Done():
			return nil
		case <-end.C:
			return nil
		case <-ticker.C:
			_, err = fmt.Fprint(w, ": beat\n\n")
		case e, open := <-listener.C:
			if !open {
				return nil
			}
			err = writeEvent(w, e)
		}
		if err != nil {
			return nil // the client left
		}
		w.Flush()
	}
}

func writeEvent(w http.ResponseWriter, e live.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Topic, data)
	return err
}
