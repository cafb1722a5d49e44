package standin

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"time"
)

// Order is what the shop knows of an order. Orders are made up from their
// number, so that any number of four to ten digits has one.
type Order struct {
	ID         string `json:"id"`
	Customer   string `json:"customer"`
	State      string `json:"state"`
	Currency   string `json:"currency"`
	Total      int    `json:"total"`
	Refunded   int    `json:"refunded"`
	Refundable int    `json:"refundable"`
	Version    int    `json:"version"` // grows with every change of the order
}

var customers = []string{"Nora Lindqvist", "Tomás Herrera", "Aiko Tanaka", "Jules Moreau", "Priya Raman", "Oskar Weiss"}

type refundRequest struct {
	OrderID  string `json:"order_id"`
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
	Note     string `json:"note"`
}

type refund struct {
	ID       string `json:"id"`
	OrderID  string `json:"order_id"`
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
	Key      string `json:"key"`
	State    string `json:"state"`
	Note     string `json:"note,omitempty"`
}

// order derives the order and takes its refunds and changes from the ledger.
func (s *Server) order(id string, past []Effect) Order {
	h := fnv.New32a()
	h.Write([]byte(id))
	n := int(h.Sum32() % 100_000)
	o := Order{ID: id, Customer: customers[n%len(customers)], State: "paid", Currency: "EUR", Total: 4_000 + n, Version: 1}
	if n%7 == 0 {
		o.Currency = "USD"
	}
	if last := id[len(id)-1:]; last == "0" {
		o.Total = 250_000 + n
	}
	for _, e := range past {
		switch e.Kind {
		case "refund":
			var r refund
			if json.Unmarshal(e.Body, &r) == nil && r.OrderID == id {
				o.Refunded += r.Amount
				o.Version++
			}
		case "order_changed":
			var c struct{ ID, State string }
			if json.Unmarshal(e.Body, &c) == nil && c.ID == id {
				o.State = c.State
				o.Version++
			}
		}
	}
	o.Refundable = o.Total - o.Refunded
	return o
}

// Order returns what the shop knows of an order, for the demo's agent, which
// reads the shop before it asks for something.
func (s *Server) Order(id string) (Order, error) {
	past, err := s.ledger.Effects()
	if err != nil {
		return Order{}, err
	}
	if _, err := strconv.ParseUint(id, 10, 64); err != nil {
		return Order{}, fmt.Errorf("there is no order %q", id)
	}
	return s.order(id, past), nil
}

func (s *Server) getOrder(w http.ResponseWriter, r *http.Request) {
	past, err := s.ledger.Effects()
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	if _, err := strconv.ParseUint(r.PathValue("id"), 10, 64); err != nil {
		fail(w, http.StatusNotFound, "no such order")
		return
	}
	answer(w, http.StatusOK, s.order(r.PathValue("id"), past))
}

// changeOrder lets the demo and the tests move an order under a request that
// waits for approval.
func (s *Server) changeOrder(w http.ResponseWriter, r *http.Request) {
	var body struct {
		State string `json:"state"`
	}
	if !decode(w, r, &body) {
		return
	}
	id := r.PathValue("id")
	raw, _ := json.Marshal(map[string]string{"ID": id, "State": body.State})
	_, _, err := s.ledger.Record(func([]Effect) (Effect, bool) {
		return Effect{Kind: "order_changed", ID: id, Body: raw, At: s.now()}, true
	})
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	s.getOrder(w, r)
}

func (s *Server) previewRefund(w http.ResponseWriter, r *http.Request) {
	var q refundRequest
	if !decode(w, r, &q) {
		return
	}
	past, err := s.ledger.Effects()
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	o := s.order(q.OrderID, past)
	answer(w, http.StatusOK, map[string]any{
		"customer": o.Customer, "paid": o.Total, "already_refunded": o.Refunded,
		"left_after_this": o.Refundable - q.Amount, "currency": o.Currency,
	})
}

// createRefund refunds once per idempotency key: the same key and body get
// the first answer again, the same key with another body is refused.
func (s *Server) createRefund(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+s.token {
		fail(w, http.StatusUnauthorized, "the shop does not know this token")
		return
	}
	var q refundRequest
	if !decode(w, r, &q) {
		return
	}
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		fail(w, http.StatusBadRequest, "an Idempotency-Key is needed")
		return
	}
	fault := s.takeFault("refund")
	if fault == "busy" {
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusServiceUnavailable, "the shop is busy; nothing was done")
		return
	}
	status, why := 0, ""
	effect, _, err := s.ledger.Record(func(past []Effect) (Effect, bool) {
		for _, e := range past {
			if e.Kind == "refund" && e.Key == key {
				var was refund
				if json.Unmarshal(e.Body, &was) != nil || was.OrderID != q.OrderID || was.Amount != q.Amount {
					status, why = http.StatusUnprocessableEntity, "this key was used for another refund"
				}
				return e, false
			}
		}
		o := s.order(q.OrderID, past)
		switch {
		case o.State != "paid":
			status, why = http.StatusConflict, "the order is "+o.State
		case q.Amount <= 0 || q.Amount > o.Refundable:
			status, why = http.StatusUnprocessableEntity, fmt.Sprintf("only %d can be refunded", o.Refundable)
		}
		if status != 0 {
			return Effect{}, false
		}
		made := refund{ID: fmt.Sprintf("re_%06d", len(past)+1), OrderID: q.OrderID, Amount: q.Amount, Currency: q.Currency, Key: key, Note: q.Note, State: "sent"}
		raw, _ := json.Marshal(made)
		return Effect{Kind: "refund", ID: made.ID, Key: key, Body: raw, At: s.now()}, true
	})
	switch {
	case err != nil:
		fail(w, http.StatusInternalServerError, err.Error())
	case status != 0:
		fail(w, status, why)
	default:
		s.respond(w, fault, http.StatusCreated, effect.Body)
	}
}

// respond answers, or fails to in the way a fault asks for, after the effect
// is durable.
func (s *Server) respond(w http.ResponseWriter, fault string, status int, body json.RawMessage) {
	switch fault {
	case "lose_answer":
		panic(http.ErrAbortHandler) // the connection breaks, as if the network did
	case "error_after":
		fail(w, http.StatusInternalServerError, "something broke after the work was done")
	case "slow":
		time.Sleep(s.slowness)
		answer(w, status, body)
	default:
		answer(w, status, body)
	}
}

func (s *Server) listRefunds(w http.ResponseWriter, r *http.Request) {
	past, err := s.ledger.Effects()
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	items := []json.RawMessage{}
	for _, e := range past {
		if e.Kind == "refund" && e.Key == r.URL.Query().Get("key") {
			items = append(items, e.Body)
		}
	}
	answer(w, http.StatusOK, map[string]any{"items": items})
}
