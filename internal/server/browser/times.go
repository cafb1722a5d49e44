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
	return parts.Time{Relative: relative(t.Sub(now)), Absolute: t.Format("Mon 2 Jan 2006, 15:04:05 MST"), ISO: t.Format(time.RFC3339Nano)}
}

// relative is a distance in time in words: "in 18 min", "3 h ago".
func relative(d time.Duration) string {
	if d > -5*time.Second && d < 5*time.Second {
		return "now"
	}
	if d < 0 {
		return distance(-d) + " ago"
	}
	return "in " + distance(d)
}

// distance is a duration in its largest fitting unit.
func distance(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		h, m := d/time.Hour, d%time.Hour/time.Minute
		if h < 3 && m > 0 {
			return fmt.Sprintf("%d h %d min", h, m)
		}
		return fmt.Sprintf("%d h", h)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
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
	return distance(d)
}
