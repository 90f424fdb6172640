// Robotsgate is a forward HTTP proxy that enforces robots rules on outbound
// traffic.
package main

import "robotsgate/internal/cli"

func main() { cli.Main() }
