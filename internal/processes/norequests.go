package processes

import (
	"fmt"
	"strconv"
	"strings"
)

// proxyHabits has clients, by the beginning of their program's name, that may ignore the variables
// for a proxy.
var proxyHabits = []struct{ program, habit string }{
	{"node", "Node ignores the proxy variables before 22.21 and 24.5"},
	{"java", "Java ignores the proxy variables: it needs -Dhttp.proxyHost and -Dhttps.proxyHost"},
	{"chrom", "Chromium and Chrome may use the desktop's proxy settings in place of the variables: run sh -c 'chromium --proxy-server=$http_proxy URL'"},
	{"firefox", "Firefox may use the proxy of its profile in place of the variables"},
}

// NoRequests returns lines on why a command may have sent no request through the gate. One with another
// exit status than 0 may have failed before.
func NoRequests(p Seen, status int) (lines []string) {
	if status != 0 && len(p.cleared) == 0 {
		return []string{"no request came through the gate: the command ended with status " + strconv.Itoa(status) + ", perhaps before it sent any; if it sent some, robotsgate doctor says why they went around the gate"}
	}
	lines = append(lines, "no request came through the gate: if the command sent any, they went around it. Likely causes:")
	if len(p.cleared) > 0 {
		lines = append(lines, "  - proxy variables were missing in: "+list(p.cleared))
	}
	told := map[string]bool{}
	for _, name := range p.names {
		for _, h := range proxyHabits {
			if strings.HasPrefix(name, h.program) && !told[h.habit] {
				told[h.habit] = true
				lines = append(lines, fmt.Sprintf("  - %s ran: %s", name, h.habit))
			}
		}
	}
	return append(lines,
		"  - no_proxy: requests to localhost, 127.0.0.1 and ::1 never use the gate",
		"  - a client that has a proxy setting of its own, or ignores the variables",
		"robotsgate doctor tries the clients of this machine with a gate that runs; on Linux, run --confine leaves the command no way around")
}

// list joins names, and leaves out all but the first few.
func list(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}
