"""A headless Chromium, driven through a pipe in its own protocol: what tools/screenshot and tools/check_report look through.
Needs nothing but Python and a Chromium (apt-get install chromium).
"""
import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile


def find_chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class NotStarted(Exception):
    """The program is there, but does not run here."""


class Browser:
    """Chromium over --remote-debugging-pipe: JSON messages that end in a zero byte, on descriptors 3 and 4."""

    def __init__(self, program, profile):
        read_there, self.write = os.pipe()
        self.read, write_there = os.pipe()
        os.set_inheritable(read_there, True)
        os.set_inheritable(write_there, True)

        def descriptors():
            a, b = os.dup(read_there), os.dup(write_there)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
             "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=descriptors)
        os.close(read_there)
        os.close(write_there)
        self.number, self.buffer, self.events = 0, b"", []
        self.session = None

    def message(self):
        while b"\0" not in self.buffer:
            part = os.read(self.read, 1 << 16)
            if not part:
                raise RuntimeError("the browser went away")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.write, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def wait(self, method):
        while True:
            for event in self.events:
                if event.get("method") == method:
                    self.events.remove(event)
                    return event
            self.events.append(self.message())

    def evaluate(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)["result"].get("value")

    def picture(self, path, height=None, width=None, top=0):
        clip = {"clip": {"x": 0, "y": top, "width": width, "height": height, "scale": 1}, "captureBeyondViewport": True} if height else {}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", **clip)["data"]))


def complaints(events):
    for event in events:
        if event.get("method") == "Runtime.exceptionThrown":
            yield event["params"]["exceptionDetails"].get("exception", {}).get("description", "exception")
        if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] in ("error", "warning"):
            yield event["params"]["entry"]["text"]


@contextlib.contextmanager
def open_page(program):
    """A browser with one empty page, whose profile goes when it is left. NotStarted when it ends before there is one."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            try:
                target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            except (RuntimeError, OSError) as error:
                raise NotStarted(f"{program} does not start: {error}") from error
            browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log"):
                browser.call(f"{domain}.enable")
            yield browser
        finally:
            browser.process.terminate()
            browser.process.wait()


def load(browser, page, width, height, scale=1, dark=False, phone=False):
    """Shows a page as a screen of that size would."""
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=phone)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
    browser.events.clear()
    browser.call("Page.navigate", url=page)
    browser.wait("Page.loadEventFired")
