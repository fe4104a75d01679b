//go:build oracle

package workload

import (
	"encoding/json"
	"fmt"
	"image"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// mediaPython returns an interpreter with OpenCV and soundfile: MEDIA_PYTHON, or a
// virtual environment under .cache, which is created if missing.
func mediaPython(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("MEDIA_PYTHON"); named != "" {
		return named
	}
	dir := must.Get(filepath.Abs(filepath.Join("..", ".cache", "opencv")))(t)
	python := filepath.Join(dir, "bin", "python")
	if exec.CommandContext(t.Context(), python, "-c", "import cv2, soundfile").Run() == nil {
		return python
	}
	for _, command := range [][]string{{"python3", "-m", "venv", dir}, {python, "-m", "pip", "install", "--quiet", "opencv-python-headless", "soundfile"}} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s\nSet MEDIA_PYTHON to an interpreter that has cv2 and soundfile.", command, err, out)
		}
	}
	return python
}

// ask runs a script with arguments and decodes the JSON it prints.
func ask(t *testing.T, script string, into any, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), mediaPython(t), append([]string{"-c", script}, args...)...)
	cmd.Stderr = os.Stderr
	out := must.Get(cmd.Output())(t)
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// readVideo opens a file like a server: from memory, with a backend that reads streams. It
// prints the header fields and counts the frames itself.
const readVideo = `
import cv2, io, json, sys
api = next(b for b in cv2.videoio_registry.getStreamBufferedBackends() if cv2.videoio_registry.hasBackend(b))
c = cv2.VideoCapture(io.BytesIO(open(sys.argv[1], "rb").read()), api, [])
out = {"opened": c.isOpened(), "head": int(c.get(cv2.CAP_PROP_FRAME_COUNT)), "fps": c.get(cv2.CAP_PROP_FPS), "frames": 0, "size": None, "means": []}
while True:
    ok, frame = c.read()
    if not ok:
        break
    out["frames"] += 1
    out["size"] = [frame.shape[1], frame.shape[0]]
    out["means"].append(float(frame.mean()))
json.dump(out, sys.stdout)
`

// TestOracleOpenCVReadsVideos checks that OpenCV opens our videos and finds the right
// number and size of frames.
func TestOracleOpenCVReadsVideos(t *testing.T) {
	for _, tc := range []struct {
		size   image.Point
		frames int
	}{{image.Pt(1280, 720), 16}, {image.Pt(256, 256), 2}, {image.Pt(46, 31), 7}} {
		data := must.Get(noiseVideo(rand.New(rand.NewPCG(1, 2)), tc.size, tc.frames))(t)
		path := filepath.Join(t.TempDir(), "film.mp4")
		must.Do(t, os.WriteFile(path, data, 0o644))
		var got struct {
			Opened       bool
			Head, Frames int
			FPS          float64
			Size         []int
			Means        []float64
		}
		ask(t, readVideo, &got, path)
		if !got.Opened || got.Head != tc.frames || got.Frames != tc.frames || got.FPS != framesPerSecond || fmt.Sprint(got.Size) != fmt.Sprintf("[%d %d]", tc.size.X, tc.size.Y) {
			t.Errorf("%v, %d frames: %+v", tc.size, tc.frames, got)
		}
		for i, mean := range got.Means { // the mean of noise
			if math.Abs(mean-127.5) > 15 {
				t.Errorf("%v: frame %d is grey of %v", tc.size, i, mean)
			}
		}
		t.Logf("%v, %d frames: %d bytes", tc.size, tc.frames, len(data))
	}
}

const writeSounds = `
import json, numpy as np, soundfile as sf, sys
out = []
for rate in (8000, 16000, 22050, 44100, 48000):
    for channels in (1, 2):
        for seconds in (0.1, 1.0, 7.3):
            y = 0.1 * np.random.default_rng(1).standard_normal((int(rate * seconds), channels))
            for form in ("wav", "flac", "mp3"):
                path = f"{sys.argv[1]}/{rate}-{channels}-{seconds}.{form}"
                sf.write(path, y, rate)
                out.append({"path": path, "seconds": len(y) / rate})
json.dump(out, sys.stdout)
`

// TestOracleAudioSeconds compares the lengths we read with files written by libsndfile:
// exact to the sample, for MP3 to the millisecond.
func TestOracleAudioSeconds(t *testing.T) {
	var files []struct {
		Path    string
		Seconds float64
	}
	ask(t, writeSounds, &files, t.TempDir())
	for _, f := range files {
		data := must.Get(os.ReadFile(f.Path))(t)
		allowed := 1e-9
		if filepath.Ext(f.Path) == ".mp3" {
			allowed = 0.001
		}
		if got := audioSeconds(data); math.Abs(got-f.Seconds) > allowed {
			t.Errorf("%s: %v s, want %v", filepath.Base(f.Path), got, f.Seconds)
		}
	}
	if len(files) != 90 {
		t.Errorf("%d files", len(files))
	}
}
