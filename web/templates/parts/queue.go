package parts

// Queue is a list of approvals and questions: the page of its own, and the
// list beside an opened item from 1100 px on.
type Queue struct {
	Title  string // "For me"
	URL    string // of the list, with its filters
	Search Search
	Groups []QueueGroup // in order: Overdue, Today, Later; or by status
	Empty  *Empty       // set when Groups is empty
	More   string       // URL of the next page; may be empty
}

// QueueGroup is a stretch of rows under one heading.
type QueueGroup struct {
	Title string // "Overdue"
	Tone  string // warn for overdue; may be empty
	Rows  []QueueRow
}

// QueueRow is one item in two lines.
type QueueRow struct {
	ID       string // of the request; the script recognises new rows by it
	URL      string // of the item, with where it was opened from
	Risk     string // low, medium, high, critical; empty for a question
	Title    string // verb and object: "Refund 48.00 EUR on order 8841"; untrusted
	Amount   string // the key amount if the tool names one; untrusted
	By       string // "billing-agent for Mara Kline"; untrusted
	Left     string // "18 min left", "waits since 3 h", "4 min overdue"
	LeftTime Time
	Urgent   bool
	Progress string // "1 of 2"; empty when one approval is enough
	Tags     []string
	Status   *Status // for lists of more than pending items
	Note     string  // what happened to it; for My decisions; untrusted
	Current  bool    // it is the one that is open
}

// Search is the line above a list.
type Search struct {
	Action  string // URL the form goes to with GET
	Query   string // as typed; untrusted
	Hint    string // "target, person, params hash, id"
	Filters []Filter
	Fields  []Field // further inputs beside the filters: since and until as dates
	Chips   []Chip  // what is on
	Clear   string  // URL without any filter; empty when nothing is on
	Hidden  []Hidden
}

// Filter is one choice beside the search; its options carry the server's
// values, the first one is "any".
type Filter struct {
	Name    string
	Label   string
	Options []Option
}

// Chip is a filter that is on.
type Chip struct {
	Text   string // "risk: high"; untrusted
	Remove string // URL of the list without it
}
