package main

import "regexp"

// A phrase is banned because readers stumble over it. Instead says how to write it.
type phrase struct {
	pattern *regexp.Regexp
	instead string
}

// banned are the phrases that comments, messages and documents must not contain.
var banned = []phrase{
	ban(`nobody|somebody|anybody|whoever`, "name the program or the person"),
	ban(`so many(?: [a-z]+)? (?:times|requests|tokens|seconds|as)`, "give the number or the unit"),
	ban(`to be had`, "available"),
	ban(`(?:is|was|are|were) over(?: after| before|[.,;:]|$)`, "finished, ended"),
	ban(`goes on(?: |[.,;:]|$)`, "continues, runs"),
	ban(`stands? (?:in|behind|beside|there|where|here)`, "is, appears"),
	ban(`(?:that|those) of (?:the|a|an|its|their|all)`, "repeat the noun"),
	ban(`likewise`, "also, or repeat the sentence"),
	ban(`(?:is|are|was) told (?:of|by|apart|to|that)`, "name the sender and the message"),
	ban(`told (?:apart|by)`, "distinguished, reported"),
	ban(`foretells?|foretold`, "predict, predicted"),
	ban(`by (?:chance|luck)`, "random variation"),
	ban(`as the server has it|by us`, "server metrics, client"),
	ban(`the thread that (?:receives|sends)`, "the receive thread, the send thread"),
	ban(`requests at a time`, "concurrency N"),
	ban(`where there (?:is|are)|where it (?:is|has)|where they are`, "if"),
	ban(`what (?:came|comes|is sent|arrived)`, "name the bytes, events or requests"),
	ban(`(?:errands?|manned|curtain|strangers? in|lieBy)`, "the trade's word"),
	ban(`knows? no`, "does not know"),
	ban(`goes before`, "overrides"),
	ban(`came to its end`, "is complete"),
	ban(`are worth \d+`, "effective sample size"),
}

// ban makes a phrase of whole words, in any case.
func ban(pattern, instead string) phrase {
	return phrase{regexp.MustCompile(`(?i)\b(?:` + pattern + `)(?:\b|$)`), instead}
}

// A limit bounds how often a word occurs in 1,000 words of Go comments. Its bounds come from code that people like to read:
// net in Go's standard library, Caddy and Litestream.
type limit struct {
	words    []string
	min, max float64 // 0: no bound
}

var limits = []limit{
	{words: []string{"where"}, max: 1.5},
	{words: []string{"what"}, max: 2},
	{words: []string{"that"}, max: 12},
	{words: []string{"it"}, max: 13},
	{words: []string{"has"}, max: 3.5},
	{words: []string{"nobody", "somebody"}, max: 0.05},
	{words: []string{"if"}, min: 8},
	{words: []string{"because"}, min: 0.4},
}
