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

// productName is removed from passwords before their characters are counted. It makes a
// password no harder to guess, because attackers try it in every instance (ASVS 5.0,
// 6.1.2).
const productName = "Rolecall"

// PasswordMax is the maximum length of a password, in code points after normalization to
// NFC.
const PasswordMax = 1024

// CheckPassword returns the code and the sentence of a field error if the password is not
// acceptable. Otherwise, it returns two empty strings. The code is "encoding" if the
// password is not UTF-8. It is "length" if the password has fewer than minimum or more
// than PasswordMax code points after normalization to NFC. It is "personal" if fewer than
// 8 code points are left after all predictable words are removed. It is "common" if the
// password is one of the most common passwords. It is also "common" if fewer than 8 code
// points are left after common passwords, repetitions and sequences of neighboring keys
// are removed too.
//
// The predictable words are the forbidden words, the name of this service, and the words
// of the known texts. The known texts are data of the user and of the tenant that others
// know, such as their names and the address.
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

// RandomPassword returns a new random password with at least 128 random bits. It has 26
// characters, A to Z and 2 to 7, in groups of 7 that can be read aloud.
func RandomPassword() string {
	var groups []string
	for group := range slices.Chunk([]byte(rand.Text()), 7) {
		groups = append(groups, string(group))
	}
	return strings.Join(groups, "-")
}

const (
	leastLeft     = 8  // minimum number of code points that an attacker cannot predict
	leastPiece    = 4  // code points; shorter pieces are not removed as common or as sequences
	longestCommon = 40 // code points; length of the longest common password
)

// fewestLeft removes predictable pieces from the password and returns the number of code
// points that are left. The password must be folded. Several ways to remove pieces can be
// possible. fewestLeft uses the way that leaves the fewest code points. Predictable
// pieces are the words. If common is true, they are also common passwords, repetitions of
// an earlier part of the password, and sequences of neighboring keys.
func fewestLeft(password string, common bool, words ...Words) int {
	longest := 0
	if common {
		longest = longestCommon
	}
	for _, w := range words {
		longest = max(longest, w.longest)
	}
	var at []int // byte offset of each code point, and of the end of the password
	for i := range password {
		at = append(at, i)
	}
	at = append(at, len(password))
	least := make([]int, len(at)) // least[i] is the result for the first i code points of the password
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

// keySequences contains sequences of neighboring keys on several keyboard layouts, and
// sequences of the alphabet, forward and backward.
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

// commonPasswords returns the passwords that attackers try first, in folded form.
// CheckPassword also removes them where they are a part of a password.
var commonPasswords = sync.OnceValue(func() map[string]bool {
	common := map[string]bool{}
	for _, password := range entries(commonText) {
		common[password] = true
	}
	return common
})

//go:embed frequent.txt
var frequentText string

// frequentPasswords returns the 5,000 most common passwords of at least 8 code points,
// folded and sorted. CheckPassword compares them only with whole passwords, because many
// of them are words, and several words can form a good passphrase.
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
