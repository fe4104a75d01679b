package token

import (
	"math/rand/v2"
	"strings"
)

// corpus contains the kinds of text on which tokenizers differ.
var corpus = map[string]string{
	"empty":   "",
	"english": "It's the best of times; it wasn't the worst. I'LL say: \"Don't panic!\" — 1,234,567.89 dollars (or £42) in 2024…\n",
	"code": "func main() {\n\tfor i := 0; i < 10; i++ {\n\t\tfmt.Println(\"i =\", i) // über\n\t}\n}\n\n\n" +
		"def f(x):\r\n    return {'a': x**2, \"b\": [1,2,3]}  # 100%\n<div class=\"x\"></div>\n",
	"chinese":     "今天天气很好，我们去公园散步吧。人工智能（AI）正在改变世界！２０２４年第１２３号",
	"japanese":    "吾輩は猫である。名前はまだ無い。カタカナとひらがな、漢字。ﾊﾝｶｸ",
	"korean":      "안녕하세요, 세계! 한국어 토크나이저 테스트입니다. \u1112\u1161\u11ab",
	"arabic":      "مرحبا بالعالم، كيف حالك اليوم؟ ١٢٣٤٥ السَّلامُ عَلَيْكُمْ",
	"hebrew":      "שלום עולם, מה שלומך? בְּרֵאשִׁית",
	"hindi":       "नमस्ते दुनिया, यह एक परीक्षण है। १२३",
	"thai":        "สวัสดีชาวโลก นี่คือการทดสอบ ๑๒๓ กำ",
	"russian":     "Привет, мир! Как дела? Ёжик в тумане.",
	"greek":       "Ὀδυσσεύς ΣΊΣΥΦΟΣ σίσυφος",
	"turkish":     "İstanbul'da ışık ve gölge İ I ı i",
	"emoji":       "😀👍🏽👨‍👩‍👧‍👦🇩🇪🏳️‍🌈 ok 👌🏿x☕️❤️‍🔥 #️⃣",
	"whitespace":  "a  b   c    d\t\te\n\n\nf\r\n\r\ng \u00a0 h\u3000i\u2003\u2028\u2029j\v\fk     \n   \n  l   ",
	"spaces":      strings.Repeat(" ", 100) + "x" + strings.Repeat("\n", 50) + strings.Repeat("\t ", 20),
	"combining":   "e\u0301 a\u0300\u0301 \u0301x n\u0303 ñ ﬁ ﬀ ① Ａ ½ ² Å Å ゙か\u3099",
	"controls":    "a\x00b\x01c\x7fd\u200be\u200df\ufefeg\ufeffh\u00adi\ufffdj",
	"numbers":     "0 1 12 123 1234 12345 123456 1234567890123 ½ Ⅷ ٣ ৩",
	"contraction": "it's IT'S it'ſ we'Re you'LL 'tis ''s 's''t 'm'd",
	"punctuation": "!!!??? ... --- ___ *** ((()))[[]]{{}} <<>> //\\\\ ~`@#$%^&*+=|;:'\",.<>/?\n!!\n\n?\r\n",
	"long word":   strings.Repeat("abcdefghij", 300),
	"long same":   strings.Repeat("a", 3000) + strings.Repeat("!", 500) + strings.Repeat("的", 700),
	"metaspace":   "▁a ▁▁b▁c ▁ ▁",
	"specials":    "<s>a</s> <|endoftext|>b<|im_start|>user\nhi<|im_end|> <bos> [INST] <unk><pad> <|begin_of_text|><｜User｜> <|eot_id|>",
	"bytes":       "<0x0A><0x41> \\u0041 \xff\xfe",
	"invalid":     "ok \xff\xfe bad \xc3( \xe4\xb8 cut \xf0\x9f\x98 \xed\xa0\x80 \xc0\xaf end\xe2",
}

// englishText returns n bytes of text similar to English prose: common words by Zipf's
// law, invented rare words, sentences and paragraphs.
func englishText(n int) string {
	r := rand.New(rand.NewPCG(7, 7))
	common := strings.Fields("the of and to in a is that for it was on with he be I by as at you are this have from or " +
		"which one had not but what all were when we there can an your his they said if do will each about how up out them " +
		"then she many some so these would other into has more her two like him see time could no make than first been its " +
		"who now people my made over did down only way find use may water long little very after words called just where most " +
		"know government different important between service measured latency throughput inference requests tokens benchmark")
	syllables := strings.Fields("con ti ment er al pre sta tion in vers ly re port ab le dis cov er ing mod el ser vice un der")
	var b strings.Builder
	for b.Len() < n {
		for i := range 5 + r.IntN(15) {
			word := common[min(int(r.ExpFloat64()*30), len(common)-1)]
			if r.IntN(12) == 0 {
				word = ""
				for range 2 + r.IntN(3) {
					word += syllables[r.IntN(len(syllables))]
				}
			}
			if i == 0 {
				word = strings.ToUpper(word[:1]) + word[1:]
			} else {
				b.WriteString([]string{" ", " ", " ", " ", " ", " ", " ", ", "}[r.IntN(8)])
			}
			b.WriteString(word)
		}
		b.WriteString([]string{". ", ". ", "? ", "! ", ".\n\n"}[r.IntN(5)])
	}
	return b.String()[:n]
}
