package pages

import (
	"countersign/web/templates/layout"
	"countersign/web/templates/parts"
)

// InboxView is any of the lists of approvals: For me, Waiting on others, My
// decisions (unknown first), All approvals. From 1100 px on the space beside
// the list shows the overview.
type InboxView struct {
	Page     layout.Page
	Queue    parts.Queue
	Overview []parts.Fact // "due today: 6", "next deadline", "what I decided last"
}
