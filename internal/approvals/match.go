package approvals

// matching assigns people to places: can[i] lists the groups person i can
// stand in, needs[g] how many places group g has. It returns a largest
// assignment, who[i] being the group of person i or -1, and its size. One
// person fills at most one place. Earlier people keep a place once they have
// one, though it may move to another of their groups.
//
// This is bipartite matching by augmenting paths (Kuhn 1955, Berge's lemma:
// an assignment is largest when no augmenting path is left), with the equal
// places of a group treated as one node with a capacity.
func matching(can [][]int, needs []int) (who []int, size int) {
	m := matcher{can: can, needs: needs, who: make([]int, len(can)), in: make([][]int, len(needs))}
	for i := range m.who {
		m.who[i] = -1
	}
	for i := range can {
		if m.place(i, make([]bool, len(needs))) {
			size++
		}
	}
	return m.who, size
}

type matcher struct {
	can   [][]int
	needs []int
	who   []int   // person to group
	in    [][]int // group to the people in it
}

// place finds a place for person i, moving others if it must; tried are the
// groups this search has been to.
func (m *matcher) place(i int, tried []bool) bool {
	for _, g := range m.can[i] {
		if tried[g] {
			continue
		}
		tried[g] = true
		if len(m.in[g]) < m.needs[g] {
			m.in[g], m.who[i] = append(m.in[g], i), g
			return true
		}
		for at, other := range m.in[g] {
			if m.place(other, tried) {
				m.in[g][at], m.who[i] = i, g
				return true
			}
		}
	}
	return false
}

// tally is how far votes fill the places of groups.
type tally struct {
	have     []int // per group
	places   int   // to be filled in all
	filled   int
	complete bool
	who      []int // the group whose place each person fills, or -1
}

// count matches people to the groups they can stand in. No places at all is
// never complete: a quorum of zero is no quorum.
func count(groups []Group, can [][]int) tally {
	needs, t := make([]int, len(groups)), tally{have: make([]int, len(groups))}
	for i, g := range groups {
		needs[i] = g.Need
		t.places += max(g.Need, 0)
	}
	who, filled := matching(can, needs)
	t.who = who
	for _, g := range who {
		if g >= 0 {
			t.have[g]++
		}
	}
	t.filled, t.complete = filled, t.places > 0 && filled == t.places
	return t
}

// stands lists the groups, by index, that the person can stand in.
func stands(groups []Group, p Person) []int {
	var all []int
	for i, g := range groups {
		if p.Active && g.holds(p) {
			all = append(all, i)
		}
	}
	return all
}

// named lists the groups, by index, that have one of the names.
func named(groups []Group, names []string) []int {
	var all []int
	for i, g := range groups {
		for _, n := range names {
			if n == g.Name {
				all = append(all, i)
			}
		}
	}
	return all
}
