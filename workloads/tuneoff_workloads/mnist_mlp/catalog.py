"""The data sets: sizes, classes, and the SHA-256 of the content of each file, which has the IDX format of MNIST.

An IDX file: two zero bytes, a type code, the number of dimensions, each dimension as a big-endian uint32, then the values. Only
unsigned bytes (type 0x08) occur in these data sets.

Source: the page of the MNIST database, section "file formats".
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Literal

from tuneoff.base.identity import digest

Role = Literal["train_images", "train_labels", "test_images", "test_labels"]
UNSIGNED_BYTE = 0x08
DIGIT_CLASSES = tuple("0123456789")
FASHION_CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def header(shape: tuple[int, ...]) -> bytes:
    """Return the header of an unsigned-byte IDX file of that shape."""
    return struct.pack(f">HBB{len(shape)}I", 0, UNSIGNED_BYTE, len(shape), *shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One IDX file of unsigned bytes. Its content is checked unpacked, because gzip files of equal content differ."""

    name: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def offset(self) -> int:
        """Where the values start, in bytes."""
        return len(header(self.shape))

    @property
    def size_bytes(self) -> int:
        return self.offset + math.prod(self.shape)

    def has_form(self, content: bytes | memoryview) -> bool:
        """Tell whether this is an IDX file of unsigned bytes with exactly this shape and length."""
        return len(content) == self.size_bytes and bytes(content[: self.offset]) == header(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """A data set of four files. The test files never change and are opened by the test alone."""

    name: str
    classes: tuple[str, ...]
    validation_size: int  # default number of validation images, taken from the training part
    files: dict[Role, DataFile]
    torchvision_class: str | None  # what can download it; None: nothing has to
    folders: tuple[str, ...] = ()  # sub-folders of TUNEOFF_DATA_DIR that may hold it
    quality_margin: float | None = None  # smallest difference of test accuracy that matters; None: nobody has settled one

    @property
    def train_size(self) -> int:
        """Images of the training part: trained on or validated on."""
        return self.files["train_labels"].shape[0]

    @property
    def pixels(self) -> int:
        """Numbers per image."""
        return math.prod(self.files["train_images"].shape[1:])

    @property
    def version(self) -> str:
        """Hash of the four contents: it names the cache folder."""
        return digest({role: file.sha256 for role, file in self.files.items()})


def _four_files(train: int, test: int, image: tuple[int, int], sha256: tuple[str, str, str, str]) -> dict[Role, DataFile]:
    return {
        "train_images": DataFile(name="train-images-idx3-ubyte", shape=(train, *image), sha256=sha256[0]),
        "train_labels": DataFile(name="train-labels-idx1-ubyte", shape=(train,), sha256=sha256[1]),
        "test_images": DataFile(name="t10k-images-idx3-ubyte", shape=(test, *image), sha256=sha256[2]),
        "test_labels": DataFile(name="t10k-labels-idx1-ubyte", shape=(test,), sha256=sha256[3]),
    }


DIGITS = Dataset(
    name="digits",
    classes=DIGIT_CLASSES,
    validation_size=297,
    torchvision_class=None,
    quality_margin=0.01,
    # The content of scikit-learn's digits.csv.gz after our fixed test split, written as IDX files.
    files=_four_files(
        1497,
        300,
        (8, 8),
        (
            "b8afa99e43b0a9d72a429511229c556da89f0471b864f8db4231e8c674d546f0",
            "95dd6efafdd9e01d11a1af259d1d1a75af3e7b163c2f965b587e1ab1bb8bfb63",
            "39e7b57efcee5eb38a06d911a5c016e0c679a7dc5e692852cf3001918b10b301",
            "ca5bad77bd2912b9e16ca4abfaf21c9f6a02ad7a538364989d9da88ac1927563",
        ),
    ),
)
MNIST = Dataset(
    name="mnist",
    classes=DIGIT_CLASSES,
    validation_size=5000,
    torchvision_class="MNIST",
    quality_margin=0.003,
    folders=("mnist", "MNIST/raw"),
    files=_four_files(
        60000,
        10000,
        (28, 28),
        (
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
)
FASHION_MNIST = Dataset(
    name="fashion_mnist",
    classes=FASHION_CLASSES,
    validation_size=5000,
    torchvision_class="FashionMNIST",
    folders=("fashion_mnist", "FashionMNIST/raw"),
    files=_four_files(
        60000,
        10000,
        (28, 28),
        # Content of the archives whose MD5 the publisher and torchvision state; the two label files were recomputed here.
        (
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    ),
)
CATALOG: dict[str, Dataset] = {dataset.name: dataset for dataset in (DIGITS, MNIST, FASHION_MNIST)}
