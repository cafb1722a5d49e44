package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"countersign/internal/audit/receipt"
	"countersign/internal/problem"
	"countersign/internal/store"
)

// RestoredAction is the entry with which a new epoch begins: the database was
// put back from a backup. Heads over it have the new epoch in their origin.
const RestoredAction = "instance.restored"

// errBehind marks a log that is shorter than a head kept beside it says.
var errBehind = errors.New("the log is older than the head")

// restore is what an entry says that begins an epoch.
type restore struct {
	seq   int64
	epoch int64
	at    time.Time
	by    string
}

func restoreIn(e Entry) restore {
	epoch, _ := strconv.ParseInt(e.Authority["epoch"], 10, 64) // an entry without one begins none
	return restore{e.Seq, epoch, e.Time, e.Actor.Name}
}

// restoredAfter returns the restore that ended the epoch; nil while it lasts.
func (v *verifier) restoredAfter(epoch int64) *restore {
	for i, r := range v.restores {
		if r.epoch > epoch {
			return &v.restores[i]
		}
	}
	return nil
}

// epochOf reads the epoch of an origin; false if it is of another log.
func (l *Log) epochOf(tenant, origin string) (int64, bool) {
	text, ours := strings.CutPrefix(origin, l.originBelow(tenant))
	epoch, err := strconv.ParseInt(text, 10, 64)
	return epoch, ours && err == nil && epoch >= 1
}

// follows compares the origin and the size of two heads of one log.
func (l *Log) follows(tenant string, now, old receipt.Head) error {
	epoch, _ := l.epochOf(tenant, now.Origin)
	before, ours := l.epochOf(tenant, old.Origin)
	switch {
	case !ours:
		return fmt.Errorf("it is of %s, not of %s", now.Origin, old.Origin)
	case epoch < before:
		return fmt.Errorf("%w: it is of %s, not of %s", errBehind, now.Origin, old.Origin)
	case now.Size < old.Size:
		return fmt.Errorf("%w: it has %d entries, not %d: the end was cut off", errBehind, now.Size, old.Size)
	}
	return nil
}

// RefuseOlder refuses a database that is older than the signed heads beside it
// say: it was put back by hand, or cut. What was sent since would be sent
// again, so nobody may drive its runs.
func (l *Log) RefuseOlder(ctx context.Context) error {
	kept, err := ReadHeadFile(l.headPath())
	if err != nil {
		return nil // it says nothing about age; that it cannot be read, verification says
	}
	return l.db.View(ctx, func(ctx context.Context, q store.Querier) error {
		heads, err := lastHeads(ctx, q)
		if err != nil {
			return err
		}
		for tenant, head := range kept {
			if why := l.contains(ctx, q, tenant, heads[tenant], head); errors.Is(why, errBehind) {
				return problem.New(problem.Conflict, "rolled_back", "The database is older than %s says (%v). It would do again what was done since. "+
					"If it is a backup that was copied here: console restore FILE --data DIR puts one back safely.", HeadFile, why)
			}
		}
		return nil
	})
}

// NewEpoch begins the epoch after both the log's own and that of every kept
// head, in the transaction that restores, with an entry in every log that
// names the backup's head and the head known before. No other process may have
// the log open; if the transaction fails, throw the Log away.
func (l *Log) NewEpoch(ctx context.Context, tx *store.Tx, by Actor, channel string, kept map[string]string) error {
	next := l.epoch
	for tenant, head := range kept {
		if h, err := l.keys().open(head); err == nil {
			epoch, _ := l.epochOf(tenant, h.Origin)
			next = max(next, epoch)
		}
	}
	next++
	heads, err := lastHeads(ctx, tx)
	if err != nil {
		return err
	}
	for tenant, head := range heads {
		_, err := l.Append(ctx, tx, Entry{Tenant: tenant, Actor: by, Channel: channel, Action: RestoredAction, Outcome: "ok",
			Authority: map[string]string{"epoch": strconv.FormatInt(next, 10), "backup_head": head, "head_before": kept[tenant]}})
		if err != nil {
			return err
		}
	}
	l.epoch = next
	return tx.ExecOne(ctx, "UPDATE audit_instance SET epoch = $1 WHERE one = 1 AND epoch < $1", next)
}
