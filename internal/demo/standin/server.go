package standin

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// bodyBytesMax bounds what the stand-ins read of one request.
const bodyBytesMax = 4 << 20

// Server serves the stand-ins under /shop and /planner, the ledger under
// /ledger, and faults under /faults.
type Server struct {
	ledger   *Ledger
	token    string
	now      func() time.Time
	slowness time.Duration

	mu     sync.Mutex // protects faults
	faults map[string][]string
}

// NewServer returns the stand-ins over one ledger; token is what the shop
// asks for.
func NewServer(l *Ledger, token string) *Server {
	return &Server{ledger: l, token: token, now: func() time.Time { return time.Now().UTC() }, slowness: 8 * time.Second, faults: map[string][]string{}}
}

// Handler returns the routes.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /shop/orders/{id}", s.getOrder)
	mux.HandleFunc("POST /shop/orders/{id}/state", s.changeOrder)
	mux.HandleFunc("POST /shop/refunds/preview", s.previewRefund)
	mux.HandleFunc("POST /shop/refunds", s.createRefund)
	mux.HandleFunc("GET /shop/refunds", s.listRefunds)
	mux.HandleFunc("POST /planner/draft", s.draft)
	mux.HandleFunc("GET /ledger", s.getLedger)
	mux.HandleFunc("POST /faults", s.setFaults)
	return mux
}

func (s *Server) getLedger(w http.ResponseWriter, _ *http.Request) {
	past, err := s.ledger.Effects()
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	if past == nil {
		past = []Effect{}
	}
	answer(w, http.StatusOK, map[string]any{"effects": past})
}

// setFaults queues faults for the next requests of a kind: lose_answer,
// error_after, busy, slow.
func (s *Server) setFaults(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Kind   string   `json:"kind"`
		Faults []string `json:"faults"`
	}
	if !decode(w, r, &body) {
		return
	}
	s.Break(body.Kind, body.Faults...)
	answer(w, http.StatusOK, map[string]any{"queued": body.Faults})
}

// Break queues faults for the next requests of a kind ("refund", "draft").
func (s *Server) Break(kind string, faults ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[kind] = append(s.faults[kind], faults...)
}

func (s *Server) takeFault(kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	queued := s.faults[kind]
	if len(queued) == 0 {
		return ""
	}
	s.faults[kind] = queued[1:]
	return queued[0]
}

func decode(w http.ResponseWriter, r *http.Request, v any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyBytesMax)).Decode(v); err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return false
	}
	return true
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the caller hung up; its request stands
}

func fail(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]string{"error": why})
}
