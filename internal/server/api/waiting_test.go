package api

import (
	"fmt"
	"testing"

	"countersign/internal/id"
	"countersign/internal/problem"
)

func TestWaits_AllTokensTogetherLeaveRoomForPages(t *testing.T) {
	w := newWaits()
	var leaves []func()
	for i := range waitsMax {
		leave, err := w.enter(id.Token(fmt.Sprintf("tok_%d", i%(waitsMax/waitsPerToken))))
		if err != nil {
			t.Fatalf("call %d of %d is refused: %v", i+1, waitsMax, err)
		}
		leaves = append(leaves, leave)
	}
	if _, err := w.enter("tok_other"); !problem.HasCode(err, "waits_full") {
		t.Errorf("one more than %d got %v, want waits_full", waitsMax, err)
	}
	if _, err := w.enter("tok_0"); !problem.HasCode(err, "too_many_waits") {
		t.Errorf("one more of a token that has %d got %v, want too_many_waits", waitsPerToken, err)
	}
	leaves[0]()
	if _, err := w.enter("tok_other"); err != nil {
		t.Errorf("after one has left, another is refused: %v", err)
	}
	for _, leave := range leaves[1:] {
		leave()
	}
	if len(w.by) != 1 || w.all != 1 {
		t.Errorf("after all but one have left, %d of %d tokens are counted", w.all, len(w.by))
	}
}
