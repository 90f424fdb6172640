package record

// Counts are numbers of requests by decision.
type Counts struct {
	Allowed   uint64 `json:"allowed"`
	Denied    uint64 `json:"denied"`
	Reported  uint64 `json:"reported"`  // would be denied, but report mode let them through
	Undecided uint64 `json:"undecided"` // malformed, prohibited, a name that does not resolve
	Refused   uint64 `json:"refused"`   // for another reason than the decision: too early, beyond a budget, at a limit
}

// Sum returns the number of all requests.
func (c Counts) Sum() uint64 { return c.Allowed + c.Denied + c.Reported + c.Undecided + c.Refused }

// Add adds other counts.
func (c *Counts) Add(more Counts) {
	c.Allowed += more.Allowed
	c.Denied += more.Denied
	c.Reported += more.Reported
	c.Undecided += more.Undecided
	c.Refused += more.Refused
}

// Count adds a request.
func (c *Counts) Count(x *Record) {
	switch {
	case x.Decision == "":
		c.Undecided++
	case x.Refused != "":
		c.Refused++
	case x.Reported():
		c.Reported++
	case x.Decision == "allow":
		c.Allowed++
	default:
		c.Denied++
	}
}
