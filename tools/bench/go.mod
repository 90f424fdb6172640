// Benchmarks beside other people's code, apart from the product so that its own
// go.mod stays short: cd tools/bench && go test -bench .
module robotsgate/tools/bench

go 1.26.0

require (
	github.com/temoto/robotstxt v1.1.2
	robotsgate v0.0.0
)

require (
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace robotsgate => ../..
