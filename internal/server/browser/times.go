package browser

import (
	"fmt"
	"time"

	"countersign/web/templates/parts"
)

// now is the wall clock; pages show distances from it.
func now() time.Time { return time.Now() }

// at shows an instant: how far away, exactly with its zone, and for machines.
func (b *Browser) at(t time.Time) parts.Time { return shown(t, now()) }

func shown(t, now time.Time) parts.Time {
	if t.IsZero() {
		return parts.Time{}
	}
	t = t.UTC()
	return parts.Time{Relative: parts.Relative(t.Sub(now)), Absolute: t.Format("Mon 2 Jan 2006, 15:04:05 MST"), ISO: t.Format(time.RFC3339Nano)}
}

// took is how long something lasted.
func took(from, to time.Time) string {
	d := to.Sub(from)
	switch {
	case from.IsZero() || to.IsZero() || d < 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%d ms", d/time.Millisecond)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return parts.Distance(d)
}
