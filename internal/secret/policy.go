package secret

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/rolecall/rolecall"
)

// productName adds no strength to a password, because attackers try it in every instance (ASVS
// 5.0, 6.1.2).
const productName = "Rolecall"

// PasswordMax is the maximum length of a password, in code points after NFC.
const PasswordMax = 1024

// CheckPassword returns a field error's code and sentence if the password is too easy to
// guess: it is shorter than the minimum of code points after NFC, it is common, or fewer
// than 8 code points are left when the forbidden words, the name of this service and the
// words of the known texts are taken out of it. The known texts are data of the user that
// others know, such as the name and the address. Both results are empty for a good
// password.
func CheckPassword(password string, minimum int, forbidden Words, known ...string) (code, detail string) {
	if !utf8.ValidString(password) {
		return "encoding", "must be valid UTF-8"
	}
	if n := utf8.RuneCountInString(norm.NFC.String(password)); n < minimum || n > PasswordMax {
		return "length", fmt.Sprintf("must have %d to %d characters", minimum, PasswordMax)
	}
	folded, words := rolecall.Fold(password), wordsOf(append(slices.Clip(known), productName)...)
	if fewestLeft(folded, false, words, forbidden) < leastLeft {
		return "personal", fmt.Sprintf("must have at least %d characters that are not part of the user's name or address, the tenant's name or a forbidden word; choose other words", leastLeft)
	}
	if _, frequent := slices.BinarySearch(frequentPasswords(), folded); frequent || fewestLeft(folded, true, words, forbidden) < leastLeft {
		return "common", "must not consist only of common passwords, repetitions and neighboring keys; choose several unrelated words"
	}
	return "", ""
}

// RandomPassword returns a new password of 128 random bits: 26 characters, A to Z
// and 2 to 7, in groups that can be read aloud.
func RandomPassword() string {
	var groups []string
	for group := range slices.Chunk([]byte(rand.Text()), 7) {
		groups = append(groups, string(group))
	}
	return strings.Join(groups, "-")
}

const (
	leastLeft     = 8  // code points that an attacker cannot predict
	leastPiece    = 4  // code points: shorter pieces are neither common nor predictable
	longestCommon = 40 // code points of the longest common password
)

// fewestLeft removes predictable pieces from the folded password and returns the number
// of code points that are left. Of all ways to remove pieces, it uses the way that leaves
// the fewest code points. The words are predictable pieces. If common is true, so are
// common passwords, repetitions of an earlier part of the password, and sequences of
// neighboring keys.
func fewestLeft(password string, common bool, words ...Words) int {
	longest := 0
	if common {
		longest = longestCommon
	}
	for _, w := range words {
		longest = max(longest, w.longest)
	}
	var at []int // the offset of each code point, and of the end
	for i := range password {
		at = append(at, i)
	}
	at = append(at, len(password))
	least := make([]int, len(at)) // least[i] is the smallest number of code points left of the first i code points
	for i := range least {
		least[i] = i
	}
	for start := range at[1:] {
		least[start+1] = min(least[start+1], least[start]+1)
		foretold := common
		for end := start + 1; end < len(at) && (foretold || end-start <= longest); end++ {
			piece := password[at[start]:at[end]]
			taken := slices.ContainsFunc(words, func(w Words) bool { return w.set[piece] })
			if common && end-start >= leastPiece {
				foretold = foretold && (strings.Contains(keySequences, piece) || strings.Contains(password[:at[end-1]], piece))
				taken = taken || foretold || commonPasswords()[piece]
			}
			if taken {
				least[end] = min(least[end], least[start])
			}
		}
	}
	return least[len(at)-1]
}

// keySequences contains sequences of neighboring keys, in both directions.
var keySequences = func() string {
	rows := []string{
		"012345678901234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjklzxcvbnm", "qwertzuiopasdfghjklyxcvbnm",
		"azertyuiopqsdfghjklmwxcvbn", "1q2w3e4r5t6y7u8i9o0p", "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p", "1qazxsw23edcvfr45tgbnhy67ujmki89olp0",
		"qazwsxedcrfvtgbyhnujmikolp", "йцукенгшщзхъфывапролджэячсмитьбю",
	}
	for _, row := range rows {
		reversed := []rune(row)
		slices.Reverse(reversed)
		rows = append(rows, string(reversed))
	}
	return strings.Join(rows, "\n")
}()

//go:embed common.txt
var commonText string

// commonPasswords returns the passwords that attackers try first, folded. They are also
// forbidden as parts of a password.
var commonPasswords = sync.OnceValue(func() map[string]bool {
	common := map[string]bool{}
	for _, password := range entries(commonText) {
		common[password] = true
	}
	return common
})

//go:embed frequent.txt
var frequentText string

// frequentPasswords returns the most common passwords that have the shortest allowed
// minimum length, folded and sorted. They are compared with whole passwords only, because
// many of them are words, and words can form a good passphrase.
var frequentPasswords = sync.OnceValue(func() []string { return entries(frequentText) })

func entries(list string) []string {
	var lines []string
	for line := range strings.Lines(list) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}
