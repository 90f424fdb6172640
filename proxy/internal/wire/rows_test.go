package wire

import (
	"strconv"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

// readRows returns the rows in the archives of testdata that match a pattern. "no clear: WHY" is a row's noClear,
// "HTTP/2 want: 400" its inHTTP2. The words behind the status of want are closes, half and or-none.
func readRows(t *testing.T, pattern string) (rows []wireRow) {
	t.Helper()
	gatetest.EachCase(t, pattern, func(name string) func(key, value string) bool {
		rows = append(rows, wireRow{name: name})
		return func(key, value string) bool { return rows[len(rows)-1].set(key, value) }
	})
	return rows
}

func (row *wireRow) set(key, value string) bool {
	switch key {
	case "method":
		row.method = value
	case "path":
		row.path = value
	case "version":
		row.version = value
	case "field":
		row.fields += value + "\r\n"
	case "body":
		row.body = value
	case "waits":
		row.waits = true
	case "h2":
		row.h2 += value + "\n"
	case "no clear":
		row.noClear = value
	case "no tunnel":
		row.noTunnel = value
	case "no HTTP/2":
		row.noHTTP2 = value
	case "reply":
		row.reply.bytes = value
	case "reply early":
		row.reply.early = true
	case "reply close":
		row.reply.close = true
	default:
		key, differs := strings.CutPrefix(key, "HTTP/2 ")
		if !differs {
			return row.expect.set(key, value)
		}
		if row.inHTTP2 == nil {
			row.inHTTP2 = &expect{}
		}
		return row.inHTTP2.set(key, value)
	}
	return true
}

func (e *expect) set(key, value string) bool {
	var err error
	switch key {
	case "want":
		status, how, _ := strings.Cut(value, " ")
		if status != "broken" {
			e.want, err = strconv.Atoi(status)
		}
		for word := range strings.FieldsSeq(how) {
			switch word {
			case "closes":
				e.closes = true
			case "half":
				e.half = true
			case "or-none":
				e.orNone = true
			default:
				return false
			}
		}
	case "arrives":
		e.arrives = value
	case "content":
		e.content = value
	case "has":
		e.has += value + "\r\n"
	case "informs":
		var status int
		status, err = strconv.Atoi(value)
		e.informs = append(e.informs, status)
	default:
		return false
	}
	return err == nil
}
