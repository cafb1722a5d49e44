package standin

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Services are the services that can be restarted.
var Services = []string{"checkout", "search", "mailer"}

// Restart restarts a service: it waits for the drain, then the restart has
// happened, and nobody can be asked about it afterwards but this ledger. The
// key is kept for the tests; the stand-in itself does not look at it.
func (l *Ledger) Restart(service string, drain time.Duration, key string) (Effect, error) {
	if !slices.Contains(Services, service) {
		return Effect{}, fmt.Errorf("there is no service %q; there are %v", service, Services)
	}
	time.Sleep(drain)
	e, _, err := l.Record(func(past []Effect) (Effect, bool) {
		n := 1
		for _, e := range past {
			if e.Kind == "restart" {
				n++
			}
		}
		raw, _ := json.Marshal(map[string]any{"service": service, "generation": n, "state": "running"})
		return Effect{Kind: "restart", ID: fmt.Sprintf("restart-%d", n), Key: key, Body: raw, At: time.Now().UTC()}, true
	})
	return e, err
}
