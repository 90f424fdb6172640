package proxy

import (
	"mime"
	"strconv"
	"strings"
)

// preferred returns the form of a refusal that an Accept header asks for:
// text/html or text/plain where the client prefers one, else
// application/problem+json (RFC 9110, 12.5.1).
func negotiate(accept []string) string {
	if len(accept) == 0 || len(accept) == 1 && accept[0] == "*/*" {
		return "application/problem+json" // as below, for nearly all crawlers
	}
	best, form := quality(accept, "application", "problem+json"), "application/problem+json"
	for _, t := range []string{"html", "plain"} {
		// A wild card that admits all is no preference.
		if q := quality(accept, "text", t); q.beats(best) {
			best, form = q, "text/"+t
		}
	}
	return form
}

// An appetite says how much a client wants a type, and how plainly it said so.
type appetite struct {
	q        float64
	explicit int // 0: nothing said, 1: */*, 2: type/*, 3: the type itself, 4: problem+json, which json stands for too
}

func (a appetite) beats(b appetite) bool {
	if a.q != b.q {
		return a.q > b.q
	}
	return a.q > 0 && a.explicit > b.explicit
}

func quality(accept []string, kind, sub string) appetite {
	var best appetite
	for _, line := range accept {
		for part := range strings.SplitSeq(line, ",") {
			mediaType, params, err := mime.ParseMediaType(strings.TrimSpace(part))
			if err != nil {
				continue
			}
			q, ok := weight(params)
			if !ok {
				continue
			}
			explicit := 0
			switch mediaType {
			case "application/problem+json":
				if sub == "problem+json" {
					explicit = 4
				}
			case "application/json":
				if sub == "problem+json" {
					explicit = 3
				}
			case kind + "/" + sub:
				explicit = 3
			case kind + "/*":
				explicit = 2
			case "*/*", "*":
				explicit = 1
			}
			if explicit <= best.explicit {
				continue
			}
			best = appetite{q, explicit}
		}
	}
	return best
}

// weight returns the q of a media range (RFC 9110, 12.4.2). A range with one that
// is none says nothing.
func weight(params map[string]string) (q float64, ok bool) {
	s, given := params["q"]
	if !given {
		return 1, true
	}
	q, err := strconv.ParseFloat(s, 64)
	return q, err == nil && q >= 0 && q <= 1
}
