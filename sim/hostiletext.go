package sim

import (
	"fmt"
	"slices"
)

// hostileTexts are texts that attack programs which display them. Each text is one
// token, escaped for a JSON string.
var hostileTexts = map[string][]string{
	"html": {
		` <script>alert(\"x\")</script>`, ` </td></table></style></script>`, ` <img/src=x/onerror=alert(1)>`,
		` &lt;b&gt;&amp;`, ` '\"><svg/onload=alert(1)>`, ` {{7*7}}`, ` <!--`, ` ]]>`,
	},
	"control": {
		` \u0000\u0001`, ` \u001b[31mred\u001b[0m`, ` \u001b]0;title\u0007`, ` \u202egnp.exe`, ` \u200b\ufeff`,
		` =cmd|'/c'!A1`, ` \ud83d\ude00`, ` |pipe|`, ` %s%n`,
	},
	"utf8": {
		" \xff\xfe", " \xc3(", " \xe2\x82", " \xf0\x9f\x98", " \xed\xa0\x80", ` \ud800`, " \ufffd",
	},
}

// hostileTokens returns the hostile texts of one kind, or of all.
func hostileTokens(kind string) ([]string, error) {
	if texts, ok := hostileTexts[kind]; ok {
		return texts, nil
	}
	if kind != "all" {
		return nil, fmt.Errorf("%q must be one of html, control, utf8, all", kind)
	}
	return slices.Concat(hostileTexts["html"], hostileTexts["control"], hostileTexts["utf8"]), nil
}
