package robotstag

import "iter"

// MaxField is how many bytes of each field name are read, over all its lines
// as if they were joined by ", ".
const MaxField = 8192

// fitting returns the lines, or their beginnings, that lie within MaxField. A
// member that reaches past it is dropped whole: half a member may say
// something else than its author did.
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
func lastMember(line string, limit int) int {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '"':
			if n := closing(line, i); n > 0 {
				i = n
			} else if i < limit {
				return end // the string, and so the member, goes on past the end
			}
		case ',':
			end = min(i, limit)
			if i >= limit {
				return end
			}
		case ' ', '\t':
		default:
			if i >= limit {
				return end
			}
		}
	}
	return end
}
