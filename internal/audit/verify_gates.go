package audit

import (
	"maps"
	"slices"
)

// isForeign reports whether a chain is of another gate than the heads, by what its records say.
func (v *Verifier) isForeign(chain, gate string) bool {
	if h, ok := v.head(chain); ok || h.Chain != "" {
		return false
	}
	return gate != "" && v.o.Gate != "" && gate != v.o.Gate
}

// foreignChains returns the chains of other gates, which can't be compared with the heads, and notes
// them. A file that has a chain with a head is of the gate of the heads: in it all chains need one,
// or anyone could add a chain.
func (v *Verifier) foreignChains() map[string]bool {
	own := map[string]bool{} // files
	for name, c := range v.chains {
		if !v.isForeign(name, c.gate) {
			for _, r := range c.runs {
				own[r.file] = true
			}
		}
	}
	type sum struct{ records, chains int }
	foreign, sums := map[string]bool{}, map[string]sum{}
	for name, c := range v.chains {
		inOwn := slices.ContainsFunc(c.runs, func(r run) bool { return own[r.file] })
		if v.isForeign(name, c.gate) && !inOwn {
			foreign[name] = true
			sums[c.gate] = sum{sums[c.gate].records + c.count, sums[c.gate].chains + 1}
		}
	}
	for _, gate := range slices.Sorted(maps.Keys(sums)) {
		v.unchecked(sums[gate].chains, "chains of gate %s: %d, of %d records; whether the first and the last records are all there was not checked, since this %s is that of gate %s%s",
			gate, sums[gate].chains, sums[gate].records, v.o.Words.Folder, v.o.Gate, v.o.Words.OtherGate)
	}
	return foreign
}
