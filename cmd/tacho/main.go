// Command tacho benchmarks LLM inference servers.
package main

import (
	"os"

	"github.com/tacho-bench/tacho/internal/cli"
)

func main() { os.Exit(cli.Main(cli.System())) }
