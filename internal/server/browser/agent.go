package browser

import "strings"

// The names by which programs give themselves away in User-Agent, the more
// particular before those they imitate.
var (
	agentNames   = [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"HeadlessChrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}}
	agentSystems = [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Macintosh", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}
)

// agentWord is where somebody is signed in, in words: "Firefox on Windows".
// What is unknown stays as the program wrote it; nothing is "unknown browser".
func agentWord(agent string) string {
	name, system := firstWord(agentNames, agent), firstWord(agentSystems, agent)
	switch {
	case strings.TrimSpace(agent) == "":
		return "unknown browser"
	case name == "":
		return agent
	case system == "":
		return name
	}
	return name + " on " + system
}

func firstWord(words [][2]string, agent string) string {
	for _, w := range words {
		if strings.Contains(agent, w[0]) {
			return w[1]
		}
	}
	return ""
}
