// Command tacho measures how an LLM inference server serves.
package main

import (
	"os"

	"tacho/cli"
)

func main() { os.Exit(cli.Main(cli.System())) }
