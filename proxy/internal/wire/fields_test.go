package wire

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// What of a request's fields is for the next hop, and what could lead an origin
// elsewhere than was decided.
func TestWireFields(t *testing.T) { runWire(t, fieldRows(t)) }

func fieldRows(t *testing.T) []wireRow {
	rows := readRows(t, "fields-*.txtar")
	kept := expect{want: 200, arrives: "GET /ok\r\nX-Kept: yes\r\n\r\n"}
	for _, row := range reroutingRows() {
		fields := row[0] + ": /private/x\r\nX-Kept: yes\r\n" + row[0] + ": /private/y\r\n"
		rows = append(rows, wireRow{name: "rerouting: " + row[0], fields: fields, expect: kept})
	}
	for _, name := range []string{"SCRIPT_NAME", "Script_Name", "Script-Name", "PATH_INFO", "X_Original_URL", "X_REWRITE-URL", "x-forwarded_uri", "X_FORWARDED_HOST", "X.Original.URL", "X!Rewrite~URL"} {
		rows = append(rows, wireRow{name: "rerouting, spelled " + name, fields: name + ": /private/x\r\nX-Kept: yes\r\n", expect: kept})
	}
	return rows
}

// The same where the origin speaks HTTP/2: framing and fields must come out alike.
func TestWireToHTTP2(t *testing.T) {
	rows := slices.DeleteFunc(slices.Concat(framingRows(t), fieldRows(t)), func(row wireRow) bool {
		lines := strings.ToLower(row.fields)
		return row.reply != wireReply{} || strings.Contains(lines, "websocket") || strings.Contains(lines, "expect:") // which are HTTP/1.1's
	})
	newWire(t, true).runAll(t, rows)
}

// reroutingRows returns the columns of each row of the table of headers that reroute a request.
func reroutingRows() (rows [][]string) {
	table, err := os.ReadFile("../header/rerouting.txt")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(table)) {
		if !strings.HasPrefix(line, "#") && line != "\n" {
			rows = append(rows, strings.Fields(line))
		}
	}
	return rows
}
