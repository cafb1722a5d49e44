package approvals

// Queries that must use a short index, with the index.
var ShortQueries = map[string][]string{
	sqlCounts:       {"request_pending", "request_unknown"},
	sqlByDeadline:   {"request_pending"},
	sqlNewest:       {"request_newest"},
	sqlDue:          {"request_pending", "request_running"},
	sqlRejected:     {"request_rejected"},
	sqlPendingSince: {"request_pending"},
}
