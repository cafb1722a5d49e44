package tools

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"net/netip"
	"time"
)

// World is the outside as this console may reach it. Its fields are set once,
// before the first call; it is safe for concurrent use.
type World struct {
	Secrets func(ctx context.Context, name string) (string, error) // asked anew for every sending
	Allow   []netip.Prefix                                         // reachable beyond public addresses; loopback must be named
	Own     []netip.AddrPort                                       // own listeners, never reachable
	LockDir string                                                 // folder of the per-effect locks; needed for exec and file writes
	Logger  *slog.Logger                                           // nil: nothing is logged
	Now     func() time.Time                                       // nil: time.Now
	Roots   *x509.CertPool                                         // nil: the system's
	Grace   time.Duration                                          // between SIGTERM and SIGKILL; 0: GraceDefault
}

// Sending is one try.
type Sending struct {
	Key     string // idempotency key, the same for every try
	Effect  string // id of the effect; names lock and temporary files
	Attempt int
	SentAt  time.Time       // when the intent of the last try was committed; Query needs it
	Config  Config          // for reconcile, precondition and preview templates
	Params  json.RawMessage // final parameters, canonical
	Open    Opener          // nil: a request with sealed values is not sent
	Pin     json.RawMessage // the approved precondition's pin; a file write needs it
	Trace   string          // W3C traceparent, may be empty
	Logger  *slog.Logger    // that says whose try it is; nil: the world's

	mask *mask // what must not be kept of an answer
}

// masked returns s with a mask of its own.
func (s Sending) masked() Sending {
	s.mask = &mask{}
	return s
}
