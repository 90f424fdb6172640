package robotstag

import "iter"

// MaxField bounds the bytes read of one field, all its lines together as if they were joined
// by ", ".
const MaxField = 8192

// fitting returns the lines, or their beginnings, that lie within MaxField. A
// member that extends beyond it is dropped whole: half a member may mean something else.
func fitting(lines []string, truncated *bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		left := MaxField
		for i, line := range lines {
			if i > 0 {
				left -= len(", ")
			}
			if len(line) > left {
				*truncated = true
				if left > 0 {
					yield(line[:lastMember(line, left)])
				}
				return
			}
			left -= len(line)
			if !yield(line) {
				return
			}
		}
	}
}

// lastMember returns where the last member that ends within line[:limit] ends.
// Commas in strings do not end a member. A quote that is not closed by then is an
// ordinary character, as in a whole line, and hides no complete member.
func lastMember(line string, limit int) int {
	end, open := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == ',' && i >= limit:
			return limit
		case c == ',':
			end = i
		case c == ' ' || c == '\t':
		case i >= limit:
			return end
		case c == '"' && !open:
			if n := closingQuote(line[:limit], i); n > 0 {
				i = n
			} else {
				open = true // don't search again: the time must stay linear
			}
		}
	}
	return end
}
