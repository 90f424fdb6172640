package history

import (
	"encoding/json"
	"slices"

	"robotsgate/policy/usage"
)

// maxLocationsRead bounds the work of CompareTDMRep: paths times locations.
const maxLocationsRead = 500_000

// CompareTDMRep returns the paths for which two versions of a tdmrep.json state different preferences or
// licences, whichever the crawler. A version that cannot be read states nothing. It compares the given paths,
// and paths made from the locations of both versions, until the work exceeds a bound.
func CompareTDMRep(was, is string, paths []string) []Restatement {
	locations := slices.Concat(locationsOf(was), locationsOf(is))
	candidates := []string{"/"}
	for _, location := range locations {
		if len(candidates) < MaxPaths {
			candidates = append(candidates, matching(location)...)
		}
	}
	before, _ := usage.ParseTDMRep([]byte(was)) // nil after an error
	after, _ := usage.ParseTDMRep([]byte(is))
	return restatements(slices.Concat(candidates, paths), len(locations), maxLocationsRead, func(path string) Restatement {
		return Restatement{Path: path, Was: usage.Read(&usage.Input{Path: path, TDMRep: before}), Is: usage.Read(&usage.Input{Path: path, TDMRep: after})}
	})
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
