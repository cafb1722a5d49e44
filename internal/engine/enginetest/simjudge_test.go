package enginetest_test

import (
	"context"
	"encoding/json"
	"time"

	"countersign/internal/engine"
	"countersign/internal/engine/enginetest"
	"countersign/internal/id"
	"countersign/internal/store"
)

// roundsMax is how often people come and look before a run that has not ended
// is one that never will.
const roundsMax = 40

// settleDown is invariant I8: once nothing goes wrong and people do what is
// asked of them, every run ends.
func (s *simulation) settleDown() {
	for range roundsMax {
		open := false
		for _, run := range s.runs {
			now := s.look(run)
			if engine.Final(now.Status) {
				s.resolve(run)
				continue
			}
			open = true
			s.resolve(run)
			s.decide(run, engine.Approved)
			s.answer(run)
			by := engine.Actor{Kind: engine.ActorEngine, ID: "engine", Name: "engine"}
			if now.Status == engine.Blocked {
				by = enginetest.Person
			}
			s.drive(run, -1, by)
		}
		if !open {
			return
		}
		s.sleep(2 * time.Minute)
	}
	for _, run := range s.runs {
		if now := s.look(run); !engine.Final(now.Status) {
			s.fail("%s never ends: it is %s, waits for %+v, error %v", s.name(run), now.Status, now.WaitingFor, now.Error)
		}
	}
}

// judge looks at what is left: I1, I3 to I7 (I9 is checked as the database
// closes).
func (s *simulation) judge() {
	for _, run := range s.runs {
		s.judgeLedger(run)
		s.judgeChain(run)
	}
	for request, verdict := range s.decisions {
		s.judgeDecision(request, verdict)
	}
	for question, digest := range s.answers {
		s.judgeAnswer(question, digest)
	}
}

// judgeLedger compares the ledger with the oracle.
func (s *simulation) judgeLedger(run id.Run) {
	for _, e := range s.effects(run) {
		n := s.target.happened(e.Key)
		gaveUp := e.Status == engine.Abandoned && e.Attempts > 0
		switch {
		case n > 1:
			s.fail("I1: an effect of %s happened %d times", s.name(run), n)
		case e.Status == engine.Confirmed && n == 0:
			s.fail("I1: an effect of %s is confirmed and never happened", s.name(run))
		case (e.Status == engine.Refused || e.Status == engine.NotDone || e.Status == engine.Prepared) && n > 0:
			s.fail("I1: an effect of %s is %s and happened", s.name(run), e.Status)
		case e.Status == engine.Abandoned && !gaveUp && n > 0:
			s.fail("I1: an effect of %s was given up before it was sent, and happened", s.name(run))
		case e.Status == engine.Sent:
			s.fail("I4: an effect of %s is still sent though its run ended", s.name(run))
		}
	}
}

// judgeChain reads the run's record: no gap, no step done twice, no write of a
// driver after its successor's.
func (s *simulation) judgeChain(run id.Run) {
	done, fence, version := map[string]bool{}, int64(0), int64(0)
	err := s.db.View(context.Background(), func(ctx context.Context, q store.Querier) error {
		rows, err := q.Query(ctx, "SELECT version, path, pass, kind, creator FROM checkpoint WHERE run = $1 ORDER BY version", string(run))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var v, pass int64
			var path, kind, creator string
			if err := rows.Scan(&v, &path, &pass, &kind, &creator); err != nil {
				return err
			}
			version++
			if v != version {
				s.fail("I5: %s has checkpoint %d where %d belongs", s.name(run), v, version)
			}
			var by struct{ Fence int64 }
			_ = json.Unmarshal([]byte(creator), &by)
			if by.Fence > 0 && by.Fence < fence {
				s.fail("I6: a driver with fence %d wrote to %s after one with %d", by.Fence, s.name(run), fence)
			}
			fence = max(fence, by.Fence)
			switch kind {
			case "step_completed", "effect_confirmed", "step_skipped", "ask_answered", "ask_expired":
				if key := path + "@" + string(rune('0'+pass)); done[key] {
					s.fail("I3: %s was done twice in %s", key, s.name(run))
				} else {
					done[key] = true
				}
			}
		}
		return rows.Err()
	})
	if err != nil {
		s.fail("read the record of %s: %v", s.name(run), err)
	}
}

// judgeDecision is invariant I7: what was acknowledged is there. A request may
// have moved on since: a changed pin asks again, a cancelled run withdraws.
func (s *simulation) judgeDecision(request id.Approval, verdict string) {
	var status string
	err := s.db.View(context.Background(), func(ctx context.Context, q store.Querier) error {
		return q.QueryRow(ctx, "SELECT status FROM fake_request WHERE id = $1", string(request)).Scan(&status)
	})
	if err != nil || verdict == engine.Rejected && status != engine.Rejected && status != engine.Withdrawn || status == engine.Pending && verdict == engine.Rejected {
		s.fail("I7: Ana's %s of a request is gone: it is %s (%v)", verdict, status, err)
	}
}

// judgeAnswer is invariant I7 for answers: what was acknowledged is the output
// of the step.
func (s *simulation) judgeAnswer(q answered, digest string) {
	var output string
	err := s.db.View(context.Background(), func(ctx context.Context, r store.Querier) error {
		return r.QueryRow(ctx, "SELECT output_digest FROM checkpoint WHERE run = $1 AND path = 'ask' AND pass = $2 AND kind = 'ask_answered'", string(q.run), q.pass).Scan(&output)
	})
	if err != nil || output != digest {
		s.fail("I7: an answer to %s is gone: recorded is %q, acknowledged was %s (%v)", s.name(q.run), output, digest, err)
	}
}
