package history

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"robotsgate/policy/usage"
)

// maxLocationsRead bounds the work of CompareTDMRep: paths times locations.
const maxLocationsRead = 500_000

// CompareTDMRep returns the paths for which two versions of a tdmrep.json state different preferences or
// licences, whichever the crawler. A version that cannot be read states nothing. It compares the given paths,
// and paths made from the locations of both versions, until the work exceeds a bound.
func CompareTDMRep(was, is string, paths []string) (all []Restatement) {
	locations := slices.Concat(locationsOf(was), locationsOf(is))
	candidates := []string{"/"}
	for _, location := range locations {
		if len(candidates) < MaxPaths {
			candidates = append(candidates, matching(location)...)
		}
	}
	before, _ := usage.ParseTDMRep([]byte(was)) // nil after an error
	after, _ := usage.ParseTDMRep([]byte(is))
	tried := map[string]bool{}
	for _, path := range slices.Concat(candidates, paths) {
		if tried[path] || (len(tried)+1)*len(locations) > maxLocationsRead && len(tried) > 0 {
			continue
		}
		tried[path] = true
		r := Restatement{Path: path, Was: usage.Read(&usage.Input{Path: path, TDMRep: before}), Is: usage.Read(&usage.Input{Path: path, TDMRep: after})}
		if !maps.Equal(r.Was.Values(), r.Is.Values()) || !slices.Equal(r.Was.URLs(), r.Is.URLs()) {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b Restatement) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// locationsOf returns the locations of a tdmrep.json. They are only paths to compare, so the entries
// need not be ones that count.
func locationsOf(text string) (locations []string) {
	var entries []struct {
		Location any `json:"location"`
	}
	_ = json.Unmarshal([]byte(text), &entries) // after an entry of another type it goes on
	for _, e := range entries {
		if location, ok := e.Location.(string); ok {
			locations = append(locations, location)
		}
	}
	return locations
}
