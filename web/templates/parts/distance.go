package parts

import (
	"fmt"
	"time"
)

// Relative is how far an instant is from now, in words: "in 18 min",
// "3 h ago". The clock of the pages' script (40-small.js) says the same words.
func Relative(d time.Duration) string {
	if d > -5*time.Second && d < 5*time.Second {
		return "now"
	}
	if d < 0 {
		return Distance(-d) + " ago"
	}
	return "in " + Distance(d)
}

// Distance is a duration in its largest fitting unit.
func Distance(d time.Duration) string {
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
