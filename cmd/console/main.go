// Command console is Countersign: it serves the approval console, starts and
// resumes runs, decides from a terminal, and administers a data folder.
package main

import (
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], env{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
