package audit

// Preferences counts requests and origins by the usage preferences that were in force for them. Its
// memory is bounded as that of a [Tally].
type Preferences struct {
	Estimated bool // there are more origins, or preferences, than can be counted
	requests  Tally
	seen      map[[2]string]bool // preferences with their origins
	origins   map[string]int     // by preference
}

// A Stated is the count of a preference.
type Stated struct {
	Named       // such as train-ai=n
	Origins int `json:"origins"` // for some URL of which it was in force
}

func (p *Preferences) add(r *Record) {
	if len(r.Usage) == 0 {
		return
	}
	values := map[string]string{} // n of any source counts
	for _, u := range r.Usage {
		if values[u.Use] != "n" && (u.Value == "y" || u.Value == "n") {
			values[u.Use] = u.Value
		}
	}
	if p.seen == nil {
		p.seen, p.origins = map[[2]string]bool{}, map[string]int{}
	}
	for use, value := range values {
		name := use[:min(len(use), maxName)] + "=" + value
		p.requests.add(name, r)
		key := [2]string{name, r.Origin[:min(len(r.Origin), maxName)]}
		switch {
		case p.seen[key]:
		case len(p.seen) < maxNames:
			p.seen[key] = true
			p.origins[name]++
		default:
			p.Estimated = true
		}
	}
}

// Len returns the number of preferences.
func (p *Preferences) Len() int { return p.requests.Len() }

// Top returns the n preferences with the most requests.
func (p *Preferences) Top(n int) []Stated {
	p.Estimated = p.Estimated || p.requests.Estimated
	all := make([]Stated, 0, min(n, p.Len()))
	for _, named := range p.requests.Top(n) {
		all = append(all, Stated{named, p.origins[named.Name]})
	}
	return all
}
