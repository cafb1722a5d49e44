// Command console is Countersign: it serves the approval console, runs
// workflows, and administers a data folder.
package main

func main() {}
