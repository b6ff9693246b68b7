import unittest

from words import count


class Count(unittest.TestCase):
    def test_case(self):
        self.assertEqual(count("The ferry and the river"), {"the": 2, "ferry": 1, "and": 1, "river": 1})

    def test_marks(self):
        self.assertEqual(count("Stop. Stop!"), {"stop": 2})

    def test_nothing(self):
        self.assertEqual(count(""), {})


if __name__ == "__main__":
    unittest.main()
