package server_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"countersign/internal/server"
)

func TestServeMetrics_AnswersOneQuestionAndEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "numbers") })
	go func() { ended <- server.ServeMetrics(ctx, l, page, slog.New(slog.DiscardHandler)) }()
	for what, want := range map[string]int{"GET /metrics": 200, "POST /metrics": 405, "GET /": 404, "GET /healthz": 404} {
		method, path, _ := strings.Cut(what, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+l.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != want {
			t.Errorf("%s: %d, want %d", what, got.StatusCode, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
