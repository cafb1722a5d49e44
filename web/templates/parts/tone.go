package parts

// toneOf maps the statuses of the product to the tones that have a colour and
// a shape. A status nobody listed is shown as unknown rather than as fine.
func toneOf(code string) string {
	switch code {
	case "good", "wait", "warn", "bad", "unknown", "plain", "info":
		return code
	case "confirmed", "completed", "allowed", "allow", "active", "ok", "done", "holds", "happened":
		return "good"
	case "approved", "sent", "running", "prepared", "now", "approve":
		return "info"
	case "pending", "waiting", "waiting_approval", "waiting_input":
		return "wait"
	case "retrying", "sleeping", "overdue", "not_done", "expired":
		return "warn"
	case "rejected", "refused", "denied", "deny", "failed", "blocked", "tampered":
		return "bad"
	case "superseded", "withdrawn", "cancelled", "skipped", "abandoned", "queued", "disabled", "ended", "todo", "revoked", "":
		return "plain"
	}
	return "unknown"
}
