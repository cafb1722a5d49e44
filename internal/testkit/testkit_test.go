package testkit_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"countersign/internal/store"
	"countersign/internal/testkit"
)

// recorder is a testing.TB that keeps failures instead of failing.
type recorder struct {
	testing.TB
	failures int
	cleanup  []func()
}

func (r *recorder) Errorf(string, ...any) { r.failures++ }
func (r *recorder) Cleanup(fn func())     { r.cleanup = append(r.cleanup, fn) }
func (r *recorder) end() {
	for i := len(r.cleanup) - 1; i >= 0; i-- {
		r.cleanup[i]()
	}
}

func TestOpen_IsCheckedAndClosedAtTheEnd(t *testing.T) {
	r := &recorder{TB: t}
	db := testkit.Open(r)
	r.end()
	if err := db.View(t.Context(), func(context.Context, store.Querier) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("View after the end of the test = %v, want ErrClosed", err)
	}
	if r.failures != 0 {
		t.Errorf("%d failures on a sound database", r.failures)
	}
}

func TestAlsoCheck_FailsTheTestItBelongsTo(t *testing.T) {
	r := &recorder{TB: t}
	db := testkit.Open(r)
	testkit.AlsoCheck(r, db, func(context.Context, store.Querier) error { return errors.New("two runs with one key") })
	r.end()
	if r.failures != 1 {
		t.Errorf("%d failures, want the one of the check", r.failures)
	}
}

func TestRegister_ChecksEveryDatabase(t *testing.T) {
	calls := 0
	testkit.Register("counting", func(ctx context.Context, q store.Querier) error {
		calls++
		has, err := testkit.HasTable(ctx, q, "store_clock")
		if err == nil && !has {
			return errors.New("no clock table")
		}
		return err
	})
	r := &recorder{TB: t}
	testkit.Open(r)
	testkit.Open(r)
	r.end()
	if calls != 2 || r.failures != 0 {
		t.Errorf("the check ran %d times with %d failures, want 2 and 0", calls, r.failures)
	}
}

func TestOtherByte_IsAnotherByteWhateverItWas(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for b := range 256 {
		before := []byte{'a', byte(b), 'c'}
		var after []byte
		if err := db.QueryRow(`SELECT `+testkit.OtherByte("x", 2)+` FROM (SELECT ? AS x)`, before).Scan(&after); err != nil {
			t.Fatal(err)
		}
		if len(after) != 3 || after[0] != 'a' || after[1] == byte(b) || after[2] != 'c' {
			t.Fatalf("%x became %x", before, after)
		}
	}
}
