package parts

// Map is a workflow as a picture: nodes in rows from top to bottom, edges
// that go straight down or through a numbered lane beside the rows. Rows,
// columns and lanes come from the workflow's graph as they are.
type Map struct {
	Title string // "weekly-report 2: where this run is"
	Nodes []MapNode
	Edges []MapEdge
	Lanes int // lanes used on each side, the most of both
}

// MapNode is one step, or the end (an empty Path).
type MapNode struct {
	Path   string
	Title  string // untrusted
	Kind   string // call, action, approve, ask, agent, sleep, set; empty: the end
	Tool   string
	Row    int
	Col    int
	State  string // done, now, todo, bad, unknown, skipped, wait
	Word   string // the state as a word: "completed", "waits for approval"
	Passes int    // passes so far when more than one
	URL    string // "#step-publish"; may be empty
}

// MapEdge is a way that control may take. Kind is next, forward, back, end as
// in the workflow's graph; To is empty for the end.
type MapEdge struct {
	From, To string
	Kind     string
	Label    string // "rejected, at most 3 times"
	Lane     int
	Taken    bool
}
