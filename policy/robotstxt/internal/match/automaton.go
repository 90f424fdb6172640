package match

import "strings"

// An automaton finds where a string first occurs in a text, in a time that depends on
// the string and not on the text. It is the text's suffix automaton (A. Blumer et al.,
// "The smallest automaton recognizing the subwords of a text", 1985): every substring
// of the text leads from state 0 to a state, and no other string does.
//
// For a text of n octets it has at most 2n states and 3n edges, so it takes about
// 70 bytes of memory for each octet, and a time linear in n to build.
type automaton struct {
	text   string
	states []state
	edges  []edge
	root   [256]int32 // the edges of state 0, which has the most
}

// A state stands for the substrings that end at the same places of the text.
type state struct {
	longest int32 // the length of the longest of them
	link    int32 // the state of its longest suffix that ends at other places too; -1: none
	end     int32 // where the first of these places is
	edges   int32 // the first of its edges in automaton.edges; 0: none
}

type edge struct {
	to    int32
	next  int32 // the next edge of the same state; 0: none
	octet byte
}

// buildSteps is what newAutomaton costs for each octet, in steps of File.Decide.
const buildSteps = 16

func newAutomaton(text string) *automaton {
	a := &automaton{
		text:   text,
		states: make([]state, 1, 2*len(text)+1),
		edges:  make([]edge, 1, 3*len(text)+1),
	}
	a.states[0].link = -1
	last := int32(0)
	for i := range len(text) {
		last = a.extend(last, text[i], int32(i+1))
	}
	return a
}

// extend adds the octet that ends at end. Last is the state of the text before it; the
// state of the text with it is returned.
func (a *automaton) extend(last int32, octet byte, end int32) int32 {
	added := a.add(state{longest: end, end: end})
	from := last
	for ; from >= 0 && a.target(from, octet) == nil; from = a.states[from].link {
		a.connect(from, octet, added)
	}
	if from < 0 {
		return added // the octet is new, and the link leads to state 0
	}
	to := *a.target(from, octet)
	if a.states[to].longest == a.states[from].longest+1 {
		a.states[added].link = to
		return added
	}
	// The substrings of state to that are no longer than this end at a place more than
	// the others now, so they get a state of their own.
	split := a.add(state{longest: a.states[from].longest + 1, link: a.states[to].link, end: a.states[to].end})
	for e := a.states[to].edges; e != 0; e = a.edges[e].next {
		a.connect(split, a.edges[e].octet, a.edges[e].to)
	}
	for ; from >= 0; from = a.states[from].link {
		t := a.target(from, octet)
		if t == nil || *t != to {
			break
		}
		*t = split
	}
	a.states[to].link, a.states[added].link = split, split
	return added
}

func (a *automaton) add(s state) int32 {
	a.states = append(a.states, s)
	return int32(len(a.states) - 1)
}

func (a *automaton) connect(from int32, octet byte, to int32) {
	if from == 0 {
		a.root[octet] = to
		return
	}
	a.edges = append(a.edges, edge{to: to, next: a.states[from].edges, octet: octet})
	a.states[from].edges = int32(len(a.edges) - 1)
}

// target returns where the edge of a state for an octet leads, nil if it has none.
func (a *automaton) target(from int32, octet byte) *int32 {
	if from == 0 {
		if a.root[octet] == 0 {
			return nil
		}
		return &a.root[octet]
	}
	for e := a.states[from].edges; e != 0; e = a.edges[e].next {
		if a.edges[e].octet == octet {
			return &a.edges[e].to
		}
	}
	return nil
}

// first returns where s first occurs in the text, -1 if it does not, and the number of
// edges that were looked at.
func (a *automaton) first(s string) (at, steps int) {
	if s == "" {
		return 0, 0
	}
	to := a.root[s[0]]
	steps = 1
	for i := 1; i < len(s) && to != 0; i++ {
		e := a.states[to].edges
		for steps++; e != 0 && a.edges[e].octet != s[i]; steps++ {
			e = a.edges[e].next
		}
		to = a.edges[e].to // edges[0] leads to state 0
	}
	if to == 0 {
		return -1, steps
	}
	return int(a.states[to].end) - len(s), steps
}

// index is strings.Index(text[from:], s), and returns how many steps it took. What
// occurs before from only, or there too, has to be searched for.
func (a *automaton) index(from int, s string) (at, steps int) {
	at, steps = a.first(s)
	if at < 0 || at >= from {
		return max(at-from, -1), steps
	}
	at = strings.Index(a.text[from:], s)
	if at < 0 {
		return at, steps + len(a.text) - from
	}
	return at, steps + at + len(s)
}
