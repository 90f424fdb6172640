package usage

import "strings"

// The names of TDMRep (W3C Community Group final report, 10 May 2024) in fields, metas and
// tdmrep.json.
const (
	tdmReservation = "tdm-reservation"
	tdmPolicy      = "tdm-policy"
)

// readTDMRep reads the TDM Reservation Protocol. The first place with a valid value counts: meta, then
// header, then file (TDM, Processing priority).
func readTDMRep(c *collector) {
	reservation, in := c.tdmReservation()
	if reservation == unknown {
		return
	}
	c.prefer(Preference{Category: string(TDM), Allowed: reservation == yes, Source: TDMRep, In: in})
	if reservation == no { // otherwise the policy is not to be processed (TDM, tdm-policy)
		c.tdmPolicy()
	}
}

// tdmReservation returns the reservation in force and its place. Of several values in one place 1
// wins.
func (c *collector) tdmReservation() (reservation value, in Place) {
	for content := range c.metas(tdmReservation) {
		reservation = max(reservation, reservationOf(content))
	}
	if reservation != unknown {
		return reservation, InMeta
	}
	for _, field := range c.in.Header["Tdm-Reservation"] {
		reservation = max(reservation, reservationOf(field))
	}
	if reservation != unknown {
		return reservation, InHeader
	}
	if entry := c.tdmEntry(); entry != nil {
		return entry.reservation, InWellKnown
	}
	return unknown, ""
}

// tdmPolicy adds the policy in force. It is looked for in the same places, whichever the reservation
// comes from.
func (c *collector) tdmPolicy() {
	for content := range c.metas(tdmPolicy) {
		if c.license(License{URL: strings.Trim(content, htmlSpace), Source: TDMRep, In: InMeta}) {
			return
		}
	}
	for _, field := range c.in.Header["Tdm-Policy"] {
		if c.license(License{URL: strings.Trim(field, space), Source: TDMRep, In: InHeader}) {
			return
		}
	}
	if entry := c.tdmEntry(); entry != nil {
		c.license(License{URL: entry.policy, Source: TDMRep, In: InWellKnown})
	}
}

// metas returns the contents of the metas with a name, in any case.
func (c *collector) metas(name string) func(yield func(content string) bool) {
	return func(yield func(string) bool) {
		for i := range c.in.Metas {
			if m := &c.in.Metas[i]; equalFold(m.Name, name) && !yield(m.Content) {
				return
			}
		}
	}
}

// htmlSpace is the white space of HTML (WHATWG Infra, ASCII whitespace).
const htmlSpace = " \t\n\f\r"

// reservationOf returns the meaning of a value (TDM, tdm-reservation).
func reservationOf(s string) value {
	switch strings.Trim(s, htmlSpace) {
	case "0":
		return yes
	case "1":
		return no
	}
	return unknown
}
